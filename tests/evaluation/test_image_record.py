"""What each image got survives a file to 16 bits, compactly, and nothing else is read as a record."""

import base64
import json
import zlib

import numpy as np
import pytest
import torch
from torch.nn import functional

from dign.evaluation import image_record
from dign.evaluation.image_record import ImageRecord
from dign.evaluation.json_values import BrokenResults
from dign.evaluation.tally import Tally

CLEAN, FOG = ("clean", 0), ("fog", 3)
COUNTS = {CLEAN: 500, FOG: 500}


def tally(seed, labels):
    generator = torch.Generator().manual_seed(seed)
    return Tally.of(torch.softmax(4 * torch.randn(500, 10, generator=generator), 1), labels, 16)


def sharpened(seed, labels):
    """The same answers, surer."""
    generator = torch.Generator().manual_seed(seed)
    return Tally.of(torch.softmax(8 * torch.randn(500, 10, generator=generator), 1), labels, 16)


@pytest.fixture
def tallies():
    labels = torch.arange(500) % 10
    return {CLEAN: tally(0, labels), FOG: tally(1, labels)}


def test_survives_json_to_16_bits_compactly(tallies):
    record = ImageRecord.of(tallies)
    text = json.dumps(record.to_json())
    assert len(text) < 4.5 * 1000 + 8 * 1000, "of the losses, two pools, 8 bytes an image with base64"
    again = ImageRecord.from_json(json.loads(text), 10, COUNTS)
    assert again == record
    for condition, counted in tallies.items():
        state = counted.confidences.state()
        assert np.abs(again.conditions[condition].confidence - state["confidence"].numpy()).max() <= 0.5 / 65535 + 1e-9
        assert again.correct(condition).tolist() == state["correct"].tolist()


def test_has_the_confidences_before_a_calibrator_too(tallies):
    labels = torch.arange(500) % 10
    raw = {CLEAN: sharpened(0, labels), FOG: sharpened(1, labels)}
    record = ImageRecord.of(tallies, raw)
    again = ImageRecord.from_json(json.loads(json.dumps(record.to_json())), 10, COUNTS)
    assert again == record and again.has_raw and again != ImageRecord.of(tallies)
    for condition, counted in raw.items():
        confidence = counted.confidences.state()["confidence"].numpy()
        assert np.abs(again.conditions[condition].raw_confidence - confidence).max() <= 0.5 / 65535 + 1e-9


def test_confidences_before_a_calibrator_are_kept_where_every_condition_has_them(tallies):
    labels = torch.arange(500) % 10
    old, new = (
        ImageRecord.of(tallies),
        ImageRecord.of(tallies, {CLEAN: sharpened(0, labels), FOG: sharpened(1, labels)}),
    )
    assert old.merge(new) == new and old.merge(new).has_raw
    fog = ImageRecord.of({FOG: tallies[FOG]}, {FOG: sharpened(1, labels)})
    part = old.merge(fog)
    assert fog.has_raw and not part.has_raw
    assert ImageRecord.from_json(json.loads(json.dumps(part.to_json())), 10, COUNTS) == old


def test_confidences_before_a_calibrator_that_changes_answers_are_not_kept(tallies):
    labels = torch.arange(500) % 10
    other = {CLEAN: tally(2, labels), FOG: tally(3, labels)}
    assert ImageRecord.of(tallies, other) == ImageRecord.of(tallies)


def test_keeps_the_mean_losses_of_each_image_over_a_pool(tallies):
    """Of the log loss and the Brier score, to three digits; fog is one of all corruptions, and there is no noise."""
    labels = torch.arange(500) % 10
    both = {**tallies, ("snow", 1): tally(2, labels)}
    record = ImageRecord.from_json(
        json.loads(json.dumps(ImageRecord.of(both).to_json())), 10, {**COUNTS, ("snow", 1): 500}
    )
    assert set(record.losses) == {"clean", "all"}
    generator = torch.Generator().manual_seed(0)
    clean = torch.softmax(4 * torch.randn(500, 10, generator=generator), 1)
    nll = functional.nll_loss(clean.log(), labels, reduction="none")
    brier = (clean - functional.one_hot(labels, 10)).square().sum(1)
    assert np.allclose(record.losses["clean"], torch.stack([nll, brier]).numpy(), rtol=1e-3, atol=1e-6)
    mean = (both[FOG].losses + both["snow", 1].losses) / 2
    assert np.allclose(record.losses["all"], mean.T.numpy(), rtol=1e-3, atol=1e-6)


def test_losses_stay_where_one_evaluation_has_the_whole_pool(tallies):
    labels = torch.arange(500) % 10
    snow = ImageRecord.of({("snow", 1): tally(2, labels)})
    whole, ripple = ImageRecord.of(tallies), ImageRecord.of({("ripple", 1): tally(3, labels)})
    assert whole.merge(ripple).losses.keys() == {"clean", "all"}, "another set leaves them as they are"
    assert whole.merge(snow).losses.keys() == {"clean"}, "fog was measured before, and snow now"
    again = ImageRecord.of({FOG: tally(4, labels)})
    assert np.array_equal(whole.merge(again).losses["all"], again.losses["all"])


@pytest.mark.parametrize("losses", [3, {"blur": ""}, {"clean": "AAAA"}, {"clean": None}, "negative", "infinite"])
def test_losses_that_are_none_are_refused(tallies, losses):
    given = ImageRecord.of(tallies).to_json()
    if isinstance(losses, str):
        value = np.float16(-1 if losses == "negative" else np.inf)
        losses = {"clean": image_record._pack(*np.full((2, 500), value).view(np.uint16))}
    with pytest.raises(BrokenResults, match=r"images\.losses"):
        ImageRecord.from_json({**given, "losses": losses}, 10, COUNTS)


def test_a_file_without_losses_is_read(tallies):
    given = ImageRecord.of(tallies).to_json()
    del given["losses"]
    assert ImageRecord.from_json(given, 10, COUNTS).losses == {}


def test_merges_by_condition_where_the_images_are_the_same(tallies):
    old, new = ImageRecord.of({CLEAN: tallies[CLEAN]}), ImageRecord.of(tallies)
    assert old.merge(new) == new
    assert new.merge(ImageRecord.of({CLEAN: tally(5, torch.zeros(500, dtype=torch.long))})) is None


def test_what_is_too_much_is_not_kept(tallies, monkeypatch):
    monkeypatch.setattr(image_record, "MAX_VALUES", 999)
    assert ImageRecord.of(tallies) is None


def bomb():
    return base64.b64encode(zlib.compress(bytes(10**8))).decode()


@pytest.mark.parametrize("text", [None, 3, "", "!!", "AAAA", bomb(), base64.b64encode(zlib.compress(b"ab")).decode()])
def test_a_text_that_is_no_record_is_refused(tallies, text):
    given = ImageRecord.of(tallies).to_json()
    for damaged in ({**given, "labels": text}, {**given, "conditions": {"clean": {"0": text}}}):
        with pytest.raises(BrokenResults, match="is not the record of 500 images"):
            ImageRecord.from_json(damaged, 10, COUNTS)


def test_conditions_and_classes_that_do_not_exist_are_refused(tallies):
    given = ImageRecord.of(tallies).to_json()
    with pytest.raises(BrokenResults, match="not measured"):
        ImageRecord.from_json(given, 10, {CLEAN: 500})
    with pytest.raises(BrokenResults, match="not measured"):
        ImageRecord.from_json({**given, "conditions": {"fog": {"x": "AAAA"}}}, 10, COUNTS)
    with pytest.raises(BrokenResults, match="class"):
        ImageRecord.from_json(given, 9, COUNTS)
