"""Advice before training: few images, unbalanced classes, few steps, a long time on a CPU."""

import numpy as np
import pytest
import torch
from PIL import Image

from dign.data.dataset import DataSet, Split
from dign.runs.config import RunConfig
from dign.runs.folder import load_run
from dign.training.data_advice import give_advice, warn_of_duration
from dign.training.train import train


def config(data="folder:x", **changes):
    return RunConfig.from_mapping({"data": data, **changes})


def photographs(folder, counts, shape=(48, 60, 3)):
    random = np.random.default_rng(0)
    for level, (name, count) in zip((60, 180), counts.items(), strict=True):
        (folder / name).mkdir(parents=True)
        for index in range(count):
            pixels = np.clip(random.normal(level, 40, shape), 0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(folder / name / f"{index}.png")


def data(*counts):
    labels = torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))
    split = Split(torch.zeros(len(labels), 3, 4, 4, dtype=torch.uint8), labels)
    return DataSet("test", tuple("abcdef"[: len(counts)]), split, split, split)


def test_advice_begins_where_the_documentation_says():
    assert give_advice(data(50, 500), steps=200) == []
    (few,) = give_advice(data(49, 400), steps=200)
    assert few.startswith("Few images: 'a' has 49") and "start from trained weights" in few
    (few,) = give_advice(data(49, 400), steps=200, from_scratch=False)
    assert "from seed to seed: compare several values of `seed`." in few
    (unbalanced,) = give_advice(data(60, 601, 70), steps=200)
    assert "'b' has 601 training images, 'a' 60" in unbalanced
    (steps,) = give_advice(data(50, 50), steps=199)
    assert steps.startswith("Few steps: 199 in all")
    assert give_advice(data(50, 50), steps=40, from_scratch=False) == []
    assert give_advice(data(50, 50), steps=39, from_scratch=False)[0].startswith("Few steps: 39 in all")
    assert len(give_advice(data(0, 30), steps=1)) == 4


@pytest.mark.slow
def test_a_run_says_it_and_keeps_it(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("DIGN_DATA", str(tmp_path / "cache"))
    photographs(tmp_path / "photos", {"[red]cat": 5, "dog": 60})
    settings = config(f"folder:{tmp_path / 'photos'}", size=40, preset="laptop", model="tinynet", epochs=1)
    train(settings, tmp_path / "run")
    said, run = capsys.readouterr().err, load_run(tmp_path / "run")
    assert "Few images: '[red]cat' has" in said and "Unbalanced classes: 'dog' has" in said
    assert len(run.info["notes"]) == 3 and run.config.settings["dign"]["sigma_max"] == pytest.approx(0.3)
    train(settings, tmp_path / "quiet", quiet=True)
    assert capsys.readouterr().err == ""


def test_a_training_of_hours_on_a_cpu_is_announced():
    assert warn_of_duration(None) == warn_of_duration(3600) == []
    (note,) = warn_of_duration(9 * 86400)
    assert "very roughly 9.0 days" in note and '`preset="fast"`' in note
