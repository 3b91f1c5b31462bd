"""Examples show what the model saw and said."""

import base64
import io
import json

import numpy as np
import pytest
import torch
from PIL import Image

from dign.corruptions import corrupt
from dign.evaluation.examples import EXAMPLES_FILE, pick_indices, pick_severities, plan_examples, png_base64
from dign.evaluation.subjects import evaluate_run


@pytest.mark.slow
def test_examples_show_what_the_model_saw_and_said(run, noise):
    evaluate_run(run, noise, device="cpu")
    entries = json.loads((run.path / EXAMPLES_FILE).read_text())["images"]
    assert len(entries) == 20 * 5 and {entry["corruption"] for entry in entries} == {"clean", *noise.corruptions}
    assert {entry["severity"] for entry in entries} == {0, 5}, "of 1 and 5"
    assert {entry["label"] for entry in entries} == set(run.classes)
    test = run.data().test
    for entry in entries:
        shown = np.asarray(Image.open(io.BytesIO(base64.b64decode(entry["png"])))).transpose(2, 0, 1)
        expected = test.images[entry["index"]]
        if entry["severity"]:
            expected = corrupt(
                expected[None], entry["corruption"], entry["severity"], profile="imagenet", first=entry["index"]
            )[0]
        assert np.array_equal(shown, expected.numpy())
        assert entry["label"] == run.classes[test.labels[entry["index"]]]
        assert 0 <= entry["second_confidence"] <= entry["confidence"] <= 100
        assert {entry["prediction"], entry["second"]} <= set(run.classes)


def test_every_class_is_there_and_the_same_labels_give_the_same_images():
    labels = torch.arange(10).repeat_interleave(100)
    chosen = pick_indices(labels)
    assert chosen == pick_indices(labels.clone()) and len(chosen) == 20
    assert labels[chosen].bincount().tolist() == [2] * 10
    rare = torch.cat([torch.zeros(500, dtype=torch.long), torch.tensor([1, 2])])
    assert set(rare[pick_indices(rare)].tolist()) == {0, 1, 2}
    many = torch.arange(60)
    assert pick_indices(many) == list(range(60)) and len(pick_indices(many, most_classes=30)) == 30


@pytest.mark.parametrize(("size", "classes"), [(16, 10), (32, 10), (32, 100), (64, 200), (128, 4), (224, 20), (900, 2)])
def test_however_large_the_images_are_the_file_is_small_and_every_class_is_in_it(size, classes):
    labels = torch.arange(1000) % classes
    clean, *corrupted = plan_examples(labels, (size, size), 38)
    bytes_each = 3 * min(size, 128) ** 2
    assert (len(clean) + sum(map(len, corrupted))) * bytes_each < 2.1 * 2**20
    assert len(set(labels[clean].tolist())) == min(classes, 100 if size == 32 else 64)
    assert all(set(indices) <= set(clean) for indices in corrupted)
    assert set().union(*corrupted) == set(clean), "each image is under a corruption as well"


def test_large_images_are_stored_as_thumbnails():
    image = torch.zeros(3, 300, 150, dtype=torch.uint8)
    assert Image.open(io.BytesIO(base64.b64decode(png_base64(image)))).size == (64, 128)


def test_severities_are_the_middle_and_the_highest_as_far_as_measured():
    assert pick_severities((1, 2, 3, 4, 5)) == [3, 5]
    assert pick_severities((5, 1)) == [5] and pick_severities((2, 4)) == [4]
