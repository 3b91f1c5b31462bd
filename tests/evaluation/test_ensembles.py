"""Ensembles are measured on images that none of their members was trained on."""

import json

import pytest
import torch

import dign
from dign.core.errors import UserError
from dign.evaluation.ensembles import open_ensemble
from dign.evaluation.results import Results
from dign.publish.hub import save_hub_folder
from dign.runs.folder import load_run
from dign.runs.seen_images import add_calibration_images, hash_split
from dign.training.train import train

SMALL = {"data": "digits", "size": 8, "epochs": 1, "batch_size": 256, "method": "standard"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("ensemble")
    for seed in range(2):
        train({**SMALL, "seed": seed}, path / f"seed-{seed}", quiet=True)
    train({**SMALL, "size": 12}, path / "larger", quiet=True)
    train({**SMALL, "validation_seed": 5}, path / "other-validation", quiet=True)
    return path


def test_it_is_measured_as_one_model_and_results_name_the_members(folder, dign_command, tmp_path):
    words = ["--only", "shot_noise", "--severity", 1, "--out", tmp_path / "both.json"]
    code, out, said = dign_command("evaluate", folder / "seed-0", folder / "seed-1", "--ensemble", "--json", *words)
    assert code == 0 and "ensemble of seed-0, seed-1: accuracy" in said
    results = Results.load(tmp_path / "both.json")
    assert results.run.members == ("seed-0", "seed-1") and results.run.title == "2 x Standard"
    assert json.loads(out)[0]["clean_accuracy"] == results.clean.accuracy
    code, _, _ = dign_command("evaluate", f"ensemble:{folder}/seed-*", *words[:-1], tmp_path / "again.json", "-q")
    assert code == 0 and Results.load(tmp_path / "again.json").clean == results.clean
    assert not (folder / "seed-0" / "results.json").exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["seed-0", "--ensemble"], "at least two members"),
        (["seed-0", "larger", "--ensemble"], "takes images of 12x12 pixels"),
        (["seed-0", "seed-1", "--ensemble", "--attack", "pgd"], "leave out --attack"),
        (["seed-0", "ensemble:seed-0,seed-1"], "is an ensemble by itself"),
    ],
)
def test_what_cannot_be_one_model_is_one_sentence(folder, words, sentence, dign_command, monkeypatch):
    monkeypatch.chdir(folder)
    code, out, said = dign_command("evaluate", *words)
    assert code == 2 and out == "" and sentence in said and not (folder / "results.json").exists()


def test_a_temperature_is_not_fitted_on_images_that_a_member_was_trained_on(folder):
    _, found = open_ensemble([folder / "seed-0", folder / "seed-1"])
    assert len(found.data.validation) > 0 and found.left_out is None
    _, found = open_ensemble([folder / "seed-0", folder / "other-validation"])
    assert len(found.data.validation) == 0 and len(found.data.test) > 0


def test_images_that_a_member_was_calibrated_on_are_left_out(folder, dign_command, tmp_path):
    places = [tmp_path / "hub-0", tmp_path / "hub-1"]
    for seed, place in enumerate(places):
        save_hub_folder(load_run(folder / f"seed-{seed}"), place)
    test = dign.data.load("digits", size=8).test
    add_calibration_images(places[0], test.select(torch.arange(0, 10)))
    add_calibration_images(places[1], test.select(torch.arange(5, 20)))
    _, found = open_ensemble(places, "digits")
    assert found.left_out == 20 and len(found.data.test) == len(test) - 20
    words = ["--data", "digits", "--only", "shot_noise", "--severity", 1, "--out", tmp_path / "both.json"]
    code, _, said = dign_command("evaluate", *places, "--ensemble", *words)
    assert code == 0 and "20 images are left out, since a member was trained or calibrated on them" in said
    results = Results.load(tmp_path / "both.json")
    assert results.clean.count == len(test) - 20 and results.evaluation.images_sha256 == hash_split(found.data.test)


def test_runs_of_other_data_need_images_that_are_named(folder, tmp_path):
    text = (folder / "seed-1" / "config.toml").read_text()
    assert load_run(folder / "seed-1").config.data == "digits"
    (folder / "seed-1" / "config.toml").write_text(text.replace('"digits"', '"cifar10"'))
    try:
        with pytest.raises(UserError, match=r"was trained on cifar10, but .* on digits"):
            open_ensemble([folder / "seed-0", folder / "seed-1"])
    finally:
        (folder / "seed-1" / "config.toml").write_text(text)
