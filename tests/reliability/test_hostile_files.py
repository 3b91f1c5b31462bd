"""Untrusted files: code in them never runs, and what is wrong with them is one line."""

import json
import os
import pickle
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

from dign.core.errors import UserError
from dign.core.files import parse_json
from dign.corruptions.benchmark.read import open_benchmark
from dign.corruptions.benchmark.write import write_benchmark
from dign.data.cache import open_store
from dign.evaluation.conditions import parse_severities
from dign.models import build
from dign.report.load import load_run as load_for_report
from dign.runs.checkpoints import load_state, load_weights, save_state, save_weights
from dign.runs.config import RunConfig
from dign.runs.folder import load_run
from dign.runs.hub_config import read_hub_config
from dign.runs.toml_files import read_toml
from dign.training.train import resume, train

SMALL = {"data": "digits", "size": 8, "epochs": 1, "batch_size": 512, "method": "standard", "track": "none"}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    return train(RunConfig.from_mapping(SMALL), tmp_path_factory.mktemp("run") / "run", quiet=True).path


@pytest.fixture
def run(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / "run")


class Payload:
    """Leaves a trace when it is unpickled."""

    def __init__(self, trace) -> None:
        self.trace = trace

    def __reduce__(self):
        return (open, (str(self.trace), "w"))


@pytest.mark.parametrize("how", ["pickle", "torch.save", "old torch.save"])
def test_a_pickle_in_place_of_weights_or_a_checkpoint_runs_nothing(run, tmp_path, dign_command, how):
    trace, evil = tmp_path / "trace", tmp_path / "evil"
    if how == "pickle":
        evil.write_bytes(pickle.dumps({"model": Payload(trace)}))
    else:
        torch.save({"model": Payload(trace)}, evil, _use_new_zipfile_serialization=how == "torch.save")
    (run / "examples.json").unlink(missing_ok=True)
    words = [
        ["evaluate", run, "--only", "fog", "--severity", "1"],
        ["predict", run, "."],
        ["train", "digits", "--size", "8", "--init", run / "model.safetensors", "--out", tmp_path / "new"],
        ["hub", "save", run, tmp_path / "hub"],
    ]
    shutil.copy(evil, run / "model.safetensors")
    for command in words:
        code, _, said = dign_command(*command)
        assert code == 2 and "Traceback" not in said, said
    (run / "model.safetensors").rename(run / "checkpoint.safetensors")
    code, _, said = dign_command("train", "--resume", run)
    assert code == 2 and "checkpoint.safetensors is not a readable safetensors file" in said
    assert not trace.exists()
    torch.load(evil, weights_only=False) if how != "pickle" else pickle.loads(evil.read_bytes())
    assert trace.exists(), "the payload would have left a trace"


@pytest.fixture
def weights(tmp_path):
    model = build("tinynet", classes=3, image_size=(8, 8))
    save_weights(tmp_path / "model.safetensors", model)
    return tmp_path / "model.safetensors", model


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda tensors: tensors.pop("1.linear.weight"), r"has no '1.linear.weight' \(1 tensors missing, 0 too many\)"),
        (lambda tensors: tensors.update(strange=torch.zeros(2)), "has 'strange', which the model lacks"),
        (lambda tensors: tensors.update({"1.linear.weight": torch.zeros(4)}), r"'1.linear.weight' has shape \(4,\)"),
        (lambda tensors: tensors["1.linear.weight"].fill_(float("nan")), "'1.linear.weight' holds values that are not"),
        (lambda tensors: tensors["1.linear.weight"].fill_(float("inf")), "'1.linear.weight' holds values that are not"),
    ],
)
def test_weights_that_do_not_fit_are_named_and_change_nothing(weights, change, sentence):
    path, model = weights
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    tensors = load_file(path)
    change(tensors)
    save_file(tensors, path)
    with pytest.raises(UserError, match=sentence):
        load_weights(path, model)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


@pytest.mark.parametrize(
    ("name", "tensor", "sentence"),
    [
        ("optimizer/1.linear.weight/momentum_buffer", torch.zeros(7), r"of '1.linear.weight' has shape \(7,\)"),
        (
            "optimizer/1.linear.weight/momentum_buffer",
            torch.full((3, 32), torch.nan),
            "'1.linear.weight' is not finite",
        ),
        ("model/1.linear.weight", torch.full((3, 32), torch.inf), "'1.linear.weight' holds values that are not finite"),
        ("optimizer/1.strange/momentum_buffer", torch.zeros(1), "has 'optimizer/1.strange/momentum_buffer'"),
        ("strange", torch.zeros(1), "has 'strange'"),
    ],
)
def test_a_checkpoint_that_does_not_fit_is_named(weights, tmp_path, name, tensor, sentence):
    _, model = weights
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    path = tmp_path / "checkpoint.safetensors"
    save_state(path, model, optimizer, {}, step=1)
    save_file({**load_file(path), name: tensor}, path, {"step": "1"})
    with pytest.raises(UserError, match=sentence):
        load_state(path, model, optimizer)


@pytest.mark.parametrize("step", ["-1", "1000000", "x", "1e3"])
def test_a_checkpoint_at_no_step_of_the_run_is_refused(run, step):
    model = load_run(run).untrained_model()
    (run / "model.safetensors").unlink()
    save_state(run / "checkpoint.safetensors", model, torch.optim.SGD(model.parameters()), {}, step=step, seconds=1)
    with pytest.raises(UserError, match="step"):
        resume(run, quiet=True)


DEEP = "[" * 100_000 + "]" * 100_000
NESTED = '{"a":' * 200 + "1" + "}" * 200
JSON_READERS = {
    "run.json": lambda folder: load_run(folder),
    "results.json": lambda folder: load_for_report(folder),
    "config.json": lambda folder: read_hub_config(folder),
    "manifest.json": lambda folder: open_benchmark(folder),
    "info.json": lambda folder: open_store(folder),
}


@pytest.mark.parametrize("name", JSON_READERS)
def test_json_of_absurd_size_or_depth_is_refused_by_its_name(run, name):
    for text in (DEEP, NESTED, '{"a": NaN}', "[" * 900 + "1" + "]" * 900):
        (run / name).write_text(text)
        with pytest.raises(UserError, match=name):
            JSON_READERS[name](run)
    with open(run / name, "wb") as file:
        file.truncate(2**36)  # 64 GB of which the disk holds nothing
    with pytest.raises(UserError, match=name):
        JSON_READERS[name](run)


@pytest.mark.parametrize("text", ["a=" + DEEP, ".".join("a" * 5000) + "=1", "[" + ".".join("a" * 5000) + "]\nb=1"])
def test_toml_of_absurd_depth_is_refused(tmp_path, text):
    (tmp_path / "run.toml").write_text(text)
    with pytest.raises(UserError, match=r"run.toml is not valid TOML: it is nested too deeply"):
        read_toml(tmp_path / "run.toml")


def test_toml_of_absurd_size_is_refused_before_it_is_read(tmp_path):
    with open(tmp_path / "run.toml", "wb") as file:
        file.truncate(2**36)
    with pytest.raises(UserError, match="larger than 1 MB"):
        read_toml(tmp_path / "run.toml")


def test_a_file_that_never_ends_is_not_read(run, tmp_path, dign_command):
    (tmp_path / "run.toml").symlink_to("/dev/zero")
    with pytest.raises(UserError, match=r"run.toml is not a configuration file: it is not a file"):
        read_toml(tmp_path / "run.toml")
    (run / "model.safetensors").unlink()
    for name in ("metrics.jsonl", "run.json"):
        (run / name).unlink()
        os.mkfifo(run / name)
        code, _, said = dign_command("train", "--resume", run, "--quiet")
        assert code == 2 and f"{name} cannot be used (it is not a file): the run folder is damaged" in said


def test_numbers_of_absurd_length_are_refused(tmp_path):
    with pytest.raises(ValueError):
        parse_json("9" * 100_000)
    (tmp_path / "run.toml").write_text("lr = 0x" + "f" * 10_000)
    with pytest.raises(UserError, match="a number in it has more than 64 bits"):
        read_toml(tmp_path / "run.toml")
    with pytest.raises(UserError, match="lr must be a number"):
        RunConfig(data="digits", lr=10**400)


@pytest.mark.parametrize("text", ["1-99999999999999", "-99999999999999-3", "5-1", "6", "1-6", "0", "", "1,,2", "x"])
def test_invalid_severities_are_refused_at_once(text):
    with pytest.raises(UserError, match="invalid severity"):
        parse_severities(text)


def test_halves_of_characters_are_refused(run):
    """They could not be printed, nor written into any other file."""
    info = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**info, "classes": ["\ud800", *info["classes"][1:]]}))
    with pytest.raises(UserError, match="classes: missing or invalid"):
        load_run(run)
    (run / "run.json").write_bytes(b'{"a": "\xed\xa0\x80"}')
    with pytest.raises(UserError, match=r"run.json cannot be used"):
        load_run(run)


@pytest.mark.parametrize("part", ["../outside", "/etc/passwd", "fog/9", "fog.npy/../../x", ""])
def test_a_manifest_that_names_a_file_outside_its_folder_is_refused(tmp_path, part):
    images = torch.zeros((4, 3, 8, 8), dtype=torch.uint8)
    settings = {"classes": ["a", "b"], "names": ["fog"], "severities": [1], "workers": 1}
    write_benchmark(images, torch.tensor([0, 1, 0, 1]), tmp_path / "made", **settings)
    manifest = json.loads((tmp_path / "made" / "manifest.json").read_text())
    manifest["parts"][part] = {"sha256": "0" * 64}
    (tmp_path / "made" / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(UserError, match="not a manifest"):
        open_benchmark(tmp_path / "made", verify=True)


def test_a_message_is_one_line_without_control_characters_of_a_length_that_can_be_read():
    error = UserError("a file called 'x\n\x1b[31mred\x07\u202e'" + "y" * 10_000)
    assert str(error).startswith("a file called 'x \ufffd[31mred\ufffd\ufffd'yyy") and len(str(error)) < 3100
