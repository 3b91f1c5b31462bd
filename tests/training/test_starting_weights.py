"""Fine-tuning: what is taken over, what starts fresh, what stays frozen, and that it resumes exactly."""

import os
import signal

import numpy as np
import pytest
import torch
from PIL import Image
from real_torchvision import need
from safetensors.torch import load_file, save_file

import dign.training.interrupts
import dign.training.loop
from dign.core.errors import UserError
from dign.models import build
from dign.runs.config import RunConfig
from dign.runs.folder import load_run
from dign.runs.weight_matching import find_head
from dign.training.starting_weights import freeze, group_parameters, load_starting_weights
from dign.training.train import resume, train

SMALL = {"data": "digits", "size": 8, "epochs": 1, "batch_size": 128, "method": "standard", "validation": 0.1}


def config(**changes):
    return RunConfig.from_mapping({**SMALL, **changes})


def weights(path):
    return load_file(path / "model.safetensors")


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    path = tmp_path_factory.mktemp("source") / "run"
    train(config(), path, quiet=True)
    return path


@pytest.fixture
def two_classes(tmp_path, monkeypatch):
    """A folder with two classes of pictures: another head than the digits'."""
    monkeypatch.setenv("DIGN_DATA", str(tmp_path / "cache"))
    random = np.random.default_rng(0)
    for name, level in (("dark", 60), ("light", 190)):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for index in range(20):
            pixels = np.clip(random.normal(level, 30, (12, 14, 3)), 0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(tmp_path / "photos" / name / f"{index}.png")
    return f"folder:{tmp_path / 'photos'}"


def test_the_learning_rate_is_a_tenth_of_the_presets_unless_it_is_given(source):
    assert config().lr == 0.1
    assert config(init=str(source)).lr == 0.01
    assert config(init=str(source), lr=0.3).lr == 0.3
    assert RunConfig.from_mapping({"data": "cifar10", "preset": "laptop", "init": "x"}).lr == 0.005


def test_a_run_to_start_from_brings_its_architecture(source):
    assert RunConfig.from_mapping({"data": "cifar10", "init": str(source)}).model == "tinynet"
    assert RunConfig.from_mapping({"data": "cifar10", "init": str(source), "model": "fastnet"}).model == "fastnet"
    assert RunConfig.from_mapping({"data": "cifar10", "init": str(source / "model.safetensors")}).model == "resnet18"


def test_training_starts_from_the_given_weights(source, tmp_path):
    """Without a learning rate the parameters end where they began; only batch statistics move."""
    train(config(init=str(source), lr=0.0, weight_decay=0.0, seed=5), tmp_path / "run", quiet=True)
    before, after = weights(source), weights(tmp_path / "run")
    for name in before:
        assert torch.equal(before[name], after[name]) or "running" in name or "num_batches" in name
    assert not torch.equal(before["1.stages.0.norm1.running_mean"], after["1.stages.0.norm1.running_mean"])
    saved = load_run(tmp_path / "run")
    assert saved.config.init == str(source) and saved.config.lr == 0.0
    assert saved.info["init"]["fresh"] == []


def test_a_frozen_body_keeps_every_weight_and_every_statistic(source, tmp_path):
    train(config(init=str(source), freeze="body"), tmp_path / "run", quiet=True)
    before, after = weights(source), weights(tmp_path / "run")
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed == {"1.linear.weight"}


def test_a_head_of_another_shape_starts_fresh_and_this_is_said(source, tmp_path, two_classes, capsys):
    changes = {"data": two_classes, "init": str(source), "batch_size": 8, "lr": 0.0, "weight_decay": 0.0, "seed": 3}
    run = train(config(**changes, freeze="body"), tmp_path / "run")
    assert "head starts from random weights, since `init`" in capsys.readouterr().err
    assert run.info["init"]["fresh"] == ["1.linear.weight"] and "1.linear.weight" in run.info["notes"][-1]
    after, before = weights(run.path), weights(source)
    assert torch.equal(after["1.linear.weight"], run.untrained_model().state_dict()["1.linear.weight"])
    assert torch.equal(after["1.patch.weight"], before["1.patch.weight"])
    assert run.info["mean"] == pytest.approx(before["0.mean"].flatten().tolist()), "the weights' own normalization"


def test_a_bare_network_without_normalization_will_do(source, tmp_path):
    bare = {name.removeprefix("1."): value for name, value in weights(source).items() if name.startswith("1.")}
    save_file(bare, tmp_path / "bare.safetensors")
    settings = config(init=str(tmp_path / "bare.safetensors"))
    model = build("tinynet", classes=10, image_size=(8, 8), seed=9)
    start = load_starting_weights(settings, model)
    start.load_into(model)
    assert start.normalization is None and start.fresh == ()
    assert all(torch.equal(model.state_dict()[f"1.{name}"], value) for name, value in bare.items())


@pytest.mark.slow
@pytest.mark.parametrize("stop_after", [3])
def test_an_interrupted_fine_tuning_resumes_to_the_same_weights(source, tmp_path, monkeypatch, stop_after):
    settings = config(init=str(source), freeze="patch,stages.0", epochs=2, method="dign")
    train(settings, tmp_path / "whole", quiet=True)
    original = dign.training.loop.TrainingLoop._step

    def step_then_interrupt(self, step):
        original(self, step)
        if step + 1 == stop_after:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(dign.training.loop.TrainingLoop, "_step", step_then_interrupt)
    with pytest.raises(dign.training.interrupts.Interrupted):
        train(settings, tmp_path / "run", quiet=True)
    monkeypatch.undo()
    resume(tmp_path / "run", quiet=True)
    whole, resumed, before = weights(tmp_path / "whole"), weights(tmp_path / "run"), weights(source)
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)
    assert all(torch.equal(whole[n], before[n]) for n in whole if n.startswith(("1.patch", "1.stages.0")))


def test_weights_that_changed_before_the_first_checkpoint_are_noticed(source, tmp_path, monkeypatch):
    tensors = weights(source)
    save_file(tensors, tmp_path / "start.safetensors")

    def fail(self, step):
        raise RuntimeError("power cut")

    monkeypatch.setattr(dign.training.loop.TrainingLoop, "_step", fail)
    with pytest.raises(RuntimeError):
        train(config(init=str(tmp_path / "start.safetensors")), tmp_path / "run", quiet=True)
    monkeypatch.undo()
    save_file({**tensors, "1.patch.bias": tensors["1.patch.bias"] + 1}, tmp_path / "start.safetensors")
    with pytest.raises(UserError, match=r"start\.safetensors has changed since the run was started"):
        resume(tmp_path / "run", quiet=True)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"init": "nowhere.safetensors"}, "There is no file nowhere.safetensors"),
        ({"init": "model.pth"}, r"There is no file model.pth\."),
        ({"init": "model.pkl"}, "model.pkl may be a pickle, .*: save the weights with safetensors.torch.save_file"),
        ({"init": "."}, "neither a run folder nor a hub folder"),
        ({"init": "SOURCE", "model": "fastnet"}, "shape"),
        ({"init": "SOURCE", "model": "resnet18"}, "does not fit the model: it lacks .*; it has .*; choose the `model`"),
        ({"init": "SOURCE", "freeze": "stage"}, "matches nothing in this model: its parts are patch, stages, linear"),
        ({"init": "SOURCE", "freeze": "body,linear"}, "leaves nothing to train"),
        ({"init": "pretrained"}, "is for models of timm and torchvision, not for tinynet"),
    ],
)
def test_mistakes_are_named_before_anything_is_written(source, tmp_path, monkeypatch, changes, message):
    monkeypatch.chdir(tmp_path)
    changes = {key: str(source) if value == "SOURCE" else value for key, value in changes.items()}
    with pytest.raises(UserError, match=message):
        train(config(**changes), tmp_path / "run", quiet=True)
    assert not (tmp_path / "run").exists()


def test_patterns_name_parts_with_all_below_them():
    def without_weights():
        with torch.device("meta"):
            return build("resnet18", classes=4, image_size=(8, 8))

    def frozen_by(patterns):
        model = without_weights()
        norms = freeze(model, patterns)
        return {name for name, parameter in model.named_parameters() if not parameter.requires_grad}, norms

    assert frozen_by("") == (set(), [])
    everything = {name for name, _ in without_weights().named_parameters()}
    assert find_head(without_weights()) == ["1.linear"]
    body, norms = frozen_by("body")
    assert everything - body == {"1.linear.weight", "1.linear.bias"} and len(norms) == 20
    part = next(iter(sorted(everything))).split(".")[1]
    assert frozen_by(part)[0] == frozen_by(f"1.{part}")[0] == {n for n in everything if n.startswith(f"1.{part}.")}
    assert frozen_by("*.weight")[0] == {name for name in everything if name.endswith(".weight")}


def test_weights_of_another_library_start_a_run_and_keep_their_normalization(two_classes, tmp_path):
    """A .pth file with other names, inside a wrapper: matched by order; the head has another number of classes."""
    body = build("efficientnet_lite0", classes=5, image_size=(32, 32), seed=7)[1]
    renamed = {
        f"module._layer{index}.{name.rpartition('.')[2]}": t
        for index, (name, t) in enumerate(body.state_dict().items())
    }
    torch.save({"state_dict": renamed, "epoch": 90}, tmp_path / "imagenet.pth")
    settings = {"data": two_classes, "size": 32, "model": "efficientnet_lite0", "init": str(tmp_path / "imagenet.pth")}
    run = train(config(**settings, lr=0.0, weight_decay=0.0, freeze_norms=True), tmp_path / "run", quiet=True)
    assert run.info["mean"] == run.info["std"] == [0.5, 0.5, 0.5]
    assert run.info["init"]["fresh"] == ["1.linear.bias", "1.linear.weight"]
    after = weights(run.path)
    assert all(torch.equal(after[f"1.{name}"], t) for name, t in body.state_dict().items() if "linear" not in name)


def test_frozen_norms_keep_their_statistics_and_train_their_weights(source, tmp_path):
    before = weights(source)
    for frozen in (False, True):
        path = tmp_path / str(frozen)
        train(config(init=str(source), freeze_norms=frozen), path, quiet=True)
        after = weights(path)
        means = [name for name in after if name.endswith("running_mean")]
        assert means and all(torch.equal(after[name], before[name]) == frozen for name in means)
        assert not any(
            torch.equal(after[name.replace("running_mean", "bias")], before[name.replace("running_mean", "bias")])
            for name in means
        )


def test_the_head_has_a_learning_rate_of_its_own(source, tmp_path):
    """At a rate of zero for the body alone, or for the head alone, that part stays where it was."""
    model = build("tinynet", classes=10, image_size=(8, 8))
    (all_of_it,) = group_parameters(model, 1.0)
    body, head = group_parameters(model, 10.0)
    assert len(all_of_it["params"]) == len(body["params"]) + len(head["params"]) and len(head["params"]) == 1
    assert (body["lr_scale"], head["lr_scale"]) == (1.0, 10.0)
    run = train(config(init=str(source), head_lr=0.0, weight_decay=0.0), tmp_path / "run", quiet=True)
    before, after = weights(source), weights(run.path)
    assert torch.equal(after["1.linear.weight"], before["1.linear.weight"])
    assert not all(torch.equal(after[name], before[name]) for name in after if "stages" in name)


def test_pretrained_weights_of_torchvision_bring_their_normalization(tmp_path, monkeypatch):
    """The real torchvision, with its cache filled as a download would have filled it."""
    models = need("torchvision.models", "torchvision")
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "home"))
    cache = tmp_path / "home" / "hub" / "checkpoints"
    cache.mkdir(parents=True)
    trained = models.get_model("mobilenet_v3_small").state_dict()
    torch.save(trained, cache / "mobilenet_v3_small-047dcff4.pth")
    settings = {"model": "torchvision:mobilenet_v3_small", "init": "pretrained", "size": 32, "freeze_norms": True}
    run = train(config(**settings, lr=0.0, weight_decay=0.0), tmp_path / "run", quiet=True)
    assert run.info["mean"] == pytest.approx([0.485, 0.456, 0.406])
    assert run.info["init"]["fresh"] == ["1.classifier.3.bias", "1.classifier.3.weight"]
    after = weights(run.path)
    assert all(torch.equal(after[f"1.{name}"], t) for name, t in trained.items() if "classifier.3" not in name)
