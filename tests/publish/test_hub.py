"""Hub folders: what was saved comes back, the card says what was measured, and untrusted folders are checked."""

import shutil
from dataclasses import replace

import pytest
import torch

pytest.importorskip("huggingface_hub", reason="needs the extra dign[hub]")

from dign.core.errors import UserError
from dign.evaluation.conditions import Conditions
from dign.evaluation.results import Results
from dign.evaluation.subjects import evaluate_run
from dign.publish.hub import HubModel, save_hub_folder
from dign.runs.calibrate import calibrate_model
from dign.runs.calibrator import read_calibrator, write_calibrator
from dign.runs.classifier import load_model
from dign.runs.config import RunConfig
from dign.runs.folder import load_run
from dign.training.train import train

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    config = RunConfig.from_mapping({"data": "digits", "size": 8, "epochs": 1, "method": "rse", "batch_size": 128})
    run = train(config, tmp_path_factory.mktemp("hub") / "run", quiet=True)
    evaluate_run(run, Conditions(("shot_noise", "fog"), (1, 5), profile="imagenet"), device="cpu", temperature=True)
    return run


@pytest.fixture(scope="module")
def folder(run, tmp_path_factory):
    return save_hub_folder(run, tmp_path_factory.mktemp("hub") / "model")


def test_what_was_saved_comes_back(run, folder):
    assert sorted(path.name for path in folder.iterdir()) == [
        "README.md", "calibration.json", "config.json", "model.safetensors",
    ]  # fmt: skip
    x = torch.rand(4, 3, 8, 8)
    model = HubModel.from_pretrained(str(folder))
    assert not model.training and torch.equal(model(x), load_model(run.path)(x)), "calibrated"
    for where in (folder, f"hub:{folder}"):
        classifier = load_model(where)
        assert classifier.classes == run.classes and classifier.image_size == (8, 8)
        assert classifier.method == run.method()
        assert torch.equal(classifier.model(x), run.model()(x)) and torch.equal(classifier(x), model(x))


def test_the_card_carries_the_measured_table(run, folder):
    card = (folder / "README.md").read_text()
    results = Results.load(run.path)
    header = card.split("---")[1]
    assert "library_name: dign" in header and "image-classification" in header
    for name in ("clean", "noise", "all"):
        assert f"{getattr(results.calibration, name).ece:.2f}" in card
    row = " | ".join(f"{value:.1f}" for value in results.corruptions["fog"].accuracies.values())
    assert f"| fog | {row} |" in card and "| 1 | 5 |" in card
    scaled = results.temperature
    assert f"| noise, at temperature {scaled.value:.2f} | {scaled.calibration.noise.accuracy:.2f} |" in card
    assert f"measured {results.evaluation.time} with dign" in card
    assert "ensemble 10" in card and "tinynet on digits, trained with RSE" in card


def test_a_run_that_was_not_evaluated_has_a_card_that_says_so(run, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(run.path, copy)
    (copy / "results.json").unlink()
    assert "Not evaluated" in (save_hub_folder(load_run(copy), tmp_path / "model") / "README.md").read_text()
    (copy / "results.json").write_text('{"schema": 1}')
    with pytest.raises(UserError, match="is broken"):
        save_hub_folder(load_run(copy), tmp_path / "other")
    assert not (tmp_path / "other").exists() and not (tmp_path / ".other.partial").exists()


def test_results_of_another_calibrator_do_not_get_into_the_card(run, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(run.path, copy)
    calibrate_model(copy, kind="vector")
    assert "Not evaluated as it is" in (save_hub_folder(load_run(copy), tmp_path / "model") / "README.md").read_text()


def test_a_calibrator_that_differs_by_rounding_is_the_same(run, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(run.path, copy)
    calibrator = read_calibrator(copy, 10)
    for difference, measured in ((3e-8, True), (1e-4, False)):
        write_calibrator(copy, replace(calibrator, transform=calibrator.temperature * (1 + difference)))
        card = (save_hub_folder(load_run(copy), tmp_path / f"model-{measured}") / "README.md").read_text()
        assert ("Not evaluated as it is" not in card) == measured


def test_a_card_speaks_of_a_calibrator_that_was_fitted_since(run, folder, tmp_path, dign_command):
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    dign_command("calibrate", f"hub:{copy}", "--data", "digits", "--kind", "vector")
    card = (copy / "README.md").read_text()
    assert "vector scaling" in card and "measured without it" in card
    before = (folder / "README.md").read_text()
    assert card.split("## Measured")[1] == before.split("## Measured")[1]


def test_an_existing_folder_is_left_alone(run, tmp_path):
    (tmp_path / "precious.txt").write_text("mine")
    with pytest.raises(UserError, match="exists already"):
        save_hub_folder(run, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["precious.txt"]


def test_it_can_be_evaluated_as_its_run_can(run, folder, tmp_path, dign_command):
    words = ("--only", "shot_noise", "--severity", "1", "--profile", "imagenet", "--device", "cpu", "-q")
    given = ("evaluate", "--model", f"hub:{folder}", "--data", "digits", *words, "--out", tmp_path / "results.json")
    code, _, err = dign_command(*given)
    assert code == 2 and "takes images of 8x8 pixels" in err and "load the data with size 8" in err
    assert dign_command(*given, "--size", 8) == (0, "", "")
    ours = Results.load(tmp_path / "results.json")
    copy = tmp_path / "copy"
    shutil.copytree(run.path, copy)
    theirs = evaluate_run(load_run(copy), Conditions(("shot_noise",), (1,), profile="imagenet"), device="cpu")
    assert ours.corruptions == theirs.corruptions and ours.clean == theirs.clean
    assert (ours.run.title, ours.run.model, ours.run.method) == ("RSE", "tinynet", "rse")
    code, _, err = dign_command(*given, "--size", 8, "--weights", "x")
    assert code == 2 and "leave out --weights" in err
    for words in (("evaluate", folder), ("export", f"hub:{folder}", "--out", tmp_path / "x.onnx")):
        code, _, err = dign_command(*words)
        assert code == 2 and "is a hub folder, but a run folder is expected" in err and err.count("\n") == 1


def test_a_license_is_named_only_if_it_is_given(run, folder, tmp_path):
    assert "license" not in (folder / "README.md").read_text().split("---")[1]
    card = save_hub_folder(run, tmp_path / "model", license="cc-by-4.0") / "README.md"
    assert "license: cc-by-4.0" in card.read_text().split("---")[1]


def test_training_starts_from_a_hub_folder(folder, tmp_path):
    config = RunConfig.from_mapping({"data": "digits", "size": 8, "model": f"hub:{folder}", "epochs": 1})
    assert (config.model, config.init, config.lr) == ("tinynet", f"hub:{folder}", 0.01)
    config = RunConfig.from_mapping(
        {"data": "digits", "size": 8, "model": f"hub:{folder}", "epochs": 1, "lr": 0.0, "weight_decay": 0.0,
         "method": "standard", "batch_size": 512}
    )  # fmt: skip
    run = train(config, tmp_path / "run", quiet=True)
    model = HubModel.from_pretrained(str(folder))
    assert all(torch.equal(a, b) for a, b in zip(run.model().parameters(), model.parameters(), strict=True))


def test_pickled_weights_are_never_opened(folder, tmp_path):
    shutil.copy(folder / "config.json", tmp_path)
    torch.save({}, tmp_path / "pytorch_model.bin")
    with pytest.raises(UserError, match=r"There is no file .*model\.safetensors"):
        load_model(tmp_path)


def test_nothing_is_uploaded_unless_asked_for(run, tmp_path, monkeypatch):
    import huggingface_hub

    calls = []

    class Api:
        def create_repo(self, name, exist_ok):
            calls.append(("create", name))

        def upload_folder(self, repo_id, folder_path):
            calls.append(("upload", repo_id, sorted(path.name for path in folder_path.iterdir())))

    monkeypatch.setattr(huggingface_hub, "HfApi", Api)
    save_hub_folder(run, tmp_path / "kept")
    assert calls == []
    save_hub_folder(run, tmp_path / "shared", push_to="me/digits")
    assert calls == [
        ("create", "me/digits"),
        ("upload", "me/digits", ["README.md", "calibration.json", "config.json", "model.safetensors"]),
    ]


def test_an_upload_that_fails_in_any_way_leaves_the_folder(run, tmp_path, monkeypatch):
    import huggingface_hub

    class Unreachable(Exception):
        """What a library for the network may raise: neither an OSError nor a ValueError."""

    class Api:
        def create_repo(self, name, exist_ok):
            raise Unreachable("Connection refused")

    monkeypatch.setattr(huggingface_hub, "HfApi", Api)
    with pytest.raises(UserError, match="was saved, but not uploaded to me/digits: Connection refused"):
        save_hub_folder(run, tmp_path / "kept", push_to="me/digits")
    assert (tmp_path / "kept" / "model.safetensors").exists()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="name a new one"):
        save_hub_folder(run, ".")
