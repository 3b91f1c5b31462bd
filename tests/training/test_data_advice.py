"""A person's own images: noise levels that follow their size, and advice where there are few of them."""

import numpy as np
import pytest
import torch
from PIL import Image

from dign.core.errors import UserError
from dign.data.dataset import DataSet, Split
from dign.runs.config import RunConfig
from dign.runs.folder import load_run, method_of
from dign.training.data_advice import advice
from dign.training.loop import resume, train


def config(data="folder:x", **changes):
    return RunConfig.from_mapping({"data": data, **changes})


@pytest.mark.parametrize(("size", "expected"), [(16, 0.2), (32, 0.2), (40, 0.3), (64, 0.6), (128, 0.6)])
def test_sigma_max_follows_the_size_of_own_images(size, expected):
    assert method_of(config(size=size)).sigma_max == pytest.approx(expected)
    assert method_of(config(size=size, method="rse")).sigma == pytest.approx(expected / 2)
    assert method_of(config(size=size, method="dign-without-cr")).sigma_max == pytest.approx(expected)
    first, second = method_of(config(size=size, method="dign+augmix")).parts
    assert first.sigma_max == pytest.approx(expected) and not hasattr(second, "sigma_max")


def test_what_is_set_stays_and_published_data_keep_their_values():
    assert method_of(config(size=64, settings={"dign": {"sigma_max": 0.1}})).sigma_max == 0.1
    assert method_of(config(size=64, settings={"dign": {"weight": 1}})).weight == 1
    assert method_of(config("cifar10", size=64)).sigma_max == 0.2
    assert method_of(config("tiny-imagenet")).sigma_max == 0.6
    assert method_of(config("digits")).sigma_max == 0.2


def photographs(folder, counts, shape=(48, 60, 3)):
    random = np.random.default_rng(0)
    for level, (name, count) in zip((60, 180), counts.items(), strict=True):
        (folder / name).mkdir(parents=True)
        for index in range(count):
            pixels = np.clip(random.normal(level, 40, shape), 0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(folder / name / f"{index}.png")


def test_the_size_is_looked_up_where_images_keep_their_own(tmp_path, monkeypatch):
    monkeypatch.setenv("DIGN_DATA", str(tmp_path / "cache"))
    photographs(tmp_path / "photos", {"cat": 6, "dog": 6})
    assert method_of(config(f"folder:{tmp_path / 'photos'}")).sigma_max == pytest.approx(0.4)


def data(*counts):
    labels = torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))
    split = Split(torch.zeros(len(labels), 3, 4, 4, dtype=torch.uint8), labels)
    return DataSet("test", tuple("abcdef"[: len(counts)]), split, split, split)


def test_advice_begins_where_the_documentation_says():
    assert advice(data(50, 500), steps=200) == []
    (few,) = advice(data(49, 400), steps=200)
    assert few.startswith("Few images: 'a' has 49") and "start from trained weights" in few
    (few,) = advice(data(49, 400), steps=200, from_nothing=False)
    assert "from seed to seed: compare several --seed." in few
    (unbalanced,) = advice(data(60, 601, 70), steps=200)
    assert "'b' has 601 training images, 'a' 60" in unbalanced
    (steps,) = advice(data(50, 50), steps=199)
    assert steps.startswith("Few steps: 199 in all")
    assert len(advice(data(0, 30), steps=1)) == 3


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


def test_a_run_finds_its_folder_from_elsewhere_and_notices_other_classes(tmp_path, monkeypatch):
    home, elsewhere = tmp_path / "home", tmp_path / "else where"
    photographs(home / "photos", {"cat": 6, "dog": 6})
    elsewhere.mkdir()
    monkeypatch.chdir(home)
    train(config("folder:photos", size=40, preset="laptop", model="tinynet", epochs=1), "run", quiet=True)
    monkeypatch.chdir(elsewhere)
    assert load_run(home / "run").data().classes == ("cat", "dog")
    home.rename(tmp_path / "moved")
    monkeypatch.chdir(tmp_path / "moved")
    assert load_run("run").data().classes == ("cat", "dog"), "by its name, where it is no longer where it was"
    (tmp_path / "moved" / "photos" / "cat").rename(tmp_path / "moved" / "photos" / "zebra")
    with pytest.raises(UserError, match="was trained on the classes cat, dog, but folder:photos now has dog, zebra"):
        load_run("run").data()


def test_a_run_notices_that_its_split_is_another(tmp_path):
    photographs(tmp_path / "photos", {"cat": 20, "dog": 20})
    settings = config(f"folder:{tmp_path / 'photos'}", size=40, preset="laptop", model="tinynet", epochs=1)
    run = train(settings, tmp_path / "run", quiet=True)
    assert len(run.data().test) == 8
    photo = tmp_path / "photos" / "cat" / "new.png"
    photo.write_bytes((tmp_path / "photos" / "cat" / "0.png").read_bytes())
    with pytest.raises(UserError, match=r"have changed since .*run was trained, and so has the split"):
        run.data()
    photo.unlink()
    assert len(run.data().test) == 8


def test_with_a_test_folder_of_its_own_new_photographs_change_no_split(tmp_path):
    photographs(tmp_path / "photos" / "train", {"cat": 6, "dog": 6})
    photographs(tmp_path / "photos" / "test", {"cat": 3, "dog": 3})
    settings = config(f"folder:{tmp_path / 'photos'}", size=40, preset="laptop", model="tinynet", epochs=1)
    run = train(settings, tmp_path / "run", quiet=True)
    for split in ("train", "test"):
        (tmp_path / "photos" / split / "dog" / "0.png").rename(tmp_path / "photos" / split / "cat" / "new.png")
    assert run.data().test.labels.tolist() == [0, 0, 0, 0, 1, 1]
    (tmp_path / "run" / "model.safetensors").unlink()
    with pytest.raises(UserError, match=r"The training images of folder:.* have changed since"):
        resume(tmp_path / "run")
