"""Run folders: what they store, and what they check when they are used again."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from dign.core.errors import ResumableError, UserError
from dign.runs.config import RunConfig
from dign.runs.folder import check_new_folder, load_run, lock_run
from dign.training.train import resume, train


def config(data="folder:x", **changes):
    return RunConfig.from_mapping({"data": data, **changes})


DIGITS = {"data": "digits", "size": 8, "epochs": 2, "batch_size": 128, "method": "dign", "validate_every": 1}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    path = tmp_path_factory.mktemp("run") / "undisturbed"
    train(DIGITS, path, quiet=True)
    return path


def photographs(folder, counts, shape=(48, 60, 3)):
    random = np.random.default_rng(0)
    for level, (name, count) in zip((60, 180), counts.items(), strict=True):
        (folder / name).mkdir(parents=True)
        for index in range(count):
            pixels = np.clip(random.normal(level, 40, shape), 0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(folder / name / f"{index}.png")


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


@pytest.mark.slow
def test_a_run_folder_tells_all_about_itself(undisturbed):
    run = load_run(undisturbed)
    assert run.finished and len(run.classes) == 10 and run.image_size == (8, 8)
    assert run.config.settings["dign"]["samples"] == 3, (
        "defaults are written out, so that they cannot change under a run"
    )
    assert run.info["cost"]["forward"] == 4 and run.info["cost"]["standard_steps"] == 4
    assert {"commit", "started", "finished", "seconds", "versions", "command"} <= run.info.keys()
    records = [json.loads(line) for line in (undisturbed / "metrics.jsonl").read_text().splitlines()]
    assert records[-1]["validation"].keys() == {"accuracy", "loss", "balanced_accuracy"}
    trained = [record for record in records if "loss" in record]
    assert trained[-1]["terms"].keys() == {"cross_entropy", "consistency"}
    assert trained[-1]["loss"] == pytest.approx(sum(trained[-1]["terms"].values()), rel=1e-5)
    assert sorted(path.name for path in undisturbed.iterdir() if path.name != "tensorboard") == [
        ".lock", "calibration.json", "config.toml", "metrics.jsonl", "model.safetensors", "run.json",
    ]  # fmt: skip


def test_an_existing_folder_is_never_written_over(undisturbed, tmp_path):
    with pytest.raises(UserError, match="exists already"):
        train(DIGITS, undisturbed, quiet=True)
    (tmp_path / "precious.txt").write_text("mine")
    with pytest.raises(UserError, match="exists already"):
        train(DIGITS, tmp_path, quiet=True)
    assert [path.name for path in tmp_path.iterdir()] == ["precious.txt"]


def test_a_folder_whose_making_was_cut_short_can_be_used_again(tmp_path):
    for name in (".lock", "run.json", ".config.toml.partial"):
        (tmp_path / name).write_text("{")
    assert train({**DIGITS, "epochs": 1}, tmp_path, quiet=True).finished


def test_two_processes_cannot_train_in_one_folder(undisturbed, tmp_path):
    with lock_run(tmp_path / "run"), pytest.raises(UserError, match="Another process"):
        train(DIGITS, tmp_path / "run", quiet=True)


def test_only_a_run_can_be_resumed_instead_of_overwritten(undisturbed, tmp_path):
    with pytest.raises(ResumableError, match="or resume the run in it") as caught:
        check_new_folder(undisturbed)
    assert caught.value.path == undisturbed
    (tmp_path / "notes.txt").touch()
    with pytest.raises(UserError, match=r"choose another folder\.$"):
        check_new_folder(tmp_path)


def test_the_validation_of_a_run_is_that_of_its_last_record(undisturbed):
    run = load_run(undisturbed)
    last = json.loads((undisturbed / "metrics.jsonl").read_text().splitlines()[-1])
    assert run.validation() == {"epoch": 2, **last["validation"]}


def test_with_the_best_weights_the_validation_is_that_of_the_best_epoch(undisturbed, tmp_path):
    run = load_run(shutil.copytree(undisturbed, tmp_path / "copy"))
    best = replace(run, config=replace(run.config, keep="best"))
    assert best.validation() is None, "there is no best.json"
    (run.path / "best.json").write_text('{"step": 10, "epoch": 1, "accuracy": 50.0, "loss": 1.5}')
    assert best.validation() == {"epoch": 1, "accuracy": 50.0, "loss": 1.5}
    (run.path / "metrics.jsonl").write_text("nonsense")
    assert run.validation() is None
