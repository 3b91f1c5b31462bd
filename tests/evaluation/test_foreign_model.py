"""Any model of any library: a Python entry and a safetensors file in, a results file out."""

import sys

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

import dign.data
from dign.cli import main
from dign.core.errors import UserError
from dign.evaluation.foreign_model import foreign_subject, make_foreign_model
from dign.evaluation.result_info import RunInfo
from dign.evaluation.results import Results

MODULE = """
import torch
from torch import nn

def make_model():
    return nn.Sequential(nn.Flatten(), nn.Linear(192, 10))

class Output:
    def __init__(self, logits):
        self.logits = logits

class LikeTransformers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = make_model()
    def forward(self, pixel_values):
        return Output(self.layers(pixel_values))

ready = make_model()
def wrong_classes(): return nn.Sequential(nn.Flatten(), nn.Linear(192, 7))
def wrong_size(): return nn.Sequential(nn.Flatten(), nn.Linear(100, 10))
def broken(): raise RuntimeError("no such file as I want")
def nothing(): return 3
def exits(): raise SystemExit("--flag missing")
def probabilities(): return nn.Sequential(make_model(), nn.Softmax(1))
def not_a_number():
    model = make_model()
    model[1].bias.data.fill_(float("nan"))
    return model
"""


@pytest.fixture
def entry(tmp_path, monkeypatch):
    """A module in the working directory, under a name of its own for every test."""
    name = f"foreign_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    yield name
    sys.modules.pop(name, None)


@pytest.fixture(scope="module")
def digits():
    return dign.data.load("digits", size=8)


@pytest.fixture
def weights(tmp_path):
    torch.manual_seed(0)
    state = nn.Sequential(nn.Flatten(), nn.Linear(192, 10)).state_dict()
    save_file(state, tmp_path / "mine.safetensors")
    return state


def command(*args):
    with pytest.raises(SystemExit) as stop:
        main(["evaluate", *map(str, args)])
    return stop.value.code


def test_a_saved_model_is_measured_as_it_is(entry, weights, digits, tmp_path):
    code = command(
        "--model", f"{entry}:make_model", "--weights", "mine.safetensors", "--data", "digits", "--size", 8,
        "--only", "impulse_noise", "--severity", 5, "--out", tmp_path / "mine", "--label", "Mine",
        "--temperature", "-q",
    )  # fmt: skip
    assert code == 0
    results = Results.load(tmp_path / "mine")
    assert results.run == RunInfo("Mine", "external", "Mine", f"{entry}:make_model", "digits", 0, 1930)
    logits = digits.test.images.float().flatten(1) / 255 @ weights["1.weight"].T + weights["1.bias"]
    accuracy = 100 * (logits.argmax(1) == digits.test.labels).float().mean().item()
    assert results.clean.accuracy == pytest.approx(accuracy)
    assert list(results.corruptions) == ["impulse_noise"] and results.temperature.images == 145


def test_outputs_with_logits_and_modules_themselves_will_do(entry, digits):
    for name in ("LikeTransformers", "ready"):
        subject = foreign_subject(f"{entry}:{name}", None, digits)
        probabilities = subject.predict(subject.model, torch.zeros(2, 3, 8, 8), None)
        assert probabilities.shape == (2, 10) and probabilities.sum().item() == pytest.approx(2)
        assert subject.about.name == f"{entry}:{name}"


def test_the_path_of_modules_is_left_as_it_was(entry):
    before = list(sys.path)
    make_foreign_model(f"{entry}:make_model")
    assert sys.path == before


def test_mistakes_are_named(entry, weights, digits, tmp_path):
    for name, message in (
        ("wrong_classes", r"must give logits \(N, 10\)"),
        ("wrong_size", r"fails on images of shape \(2, 3, 8, 8\)"),
        ("broken", "RuntimeError: no such file as I want"),
        ("nothing", "gave a int"),
        ("exits", "SystemExit: --flag missing"),
        ("probabilities", "gives probabilities, where logits are expected"),
        ("not_a_number", "logits that are not finite"),
        ("missing", "has no attribute 'missing'"),
    ):
        with pytest.raises(UserError, match=message):
            foreign_subject(f"{entry}:{name}", None, digits)
    with pytest.raises(UserError, match="No module named"):
        make_foreign_model("no_such_module:make_model")
    with pytest.raises(UserError, match=f"is a file: name its module, as in {entry}:make_model"):
        make_foreign_model(f"{entry}.py:make_model")
    with pytest.raises(UserError, match="MODULE:FUNCTION"):
        make_foreign_model("make_model")
    (tmp_path / "mine.pt").write_bytes(b"whatever")
    with pytest.raises(UserError, match=r"is not a file of torch\.save, or is damaged"):
        foreign_subject(f"{entry}:make_model", tmp_path / "mine.pt", digits)
    save_file({"other": torch.zeros(1)}, tmp_path / "other.safetensors")
    with pytest.raises(UserError, match="belongs to another model"):
        foreign_subject(f"{entry}:make_model", tmp_path / "other.safetensors", digits)


def test_a_model_may_import_what_lies_beside_it_when_it_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "beside_lazy.py").write_text("FACTOR = 2\n")
    (tmp_path / "lazy_module.py").write_text(
        "from torch import nn\n"
        "class Lazy(nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.inner = nn.Sequential(nn.Flatten(), nn.Linear(192, 10))\n"
        "    def forward(self, x):\n"
        "        import beside_lazy\n"
        "        return self.inner(x) * beside_lazy.FACTOR\n"
    )
    words = ("--data", "digits", "--size", "8", "--only", "contrast", "--severity", "1", "--quiet")
    assert command("--model", "lazy_module:Lazy", *words) == 0
