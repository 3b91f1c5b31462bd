"""Any model of any library: a Python entry and a safetensors file in, a results file out."""

import sys
from dataclasses import replace

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

import dign
import dign.data
from dign.cli import main
from dign.core.errors import UserError
from dign.evaluation.foreign_model import describe_foreign, foreign_subject
from dign.evaluation.result_info import RunInfo
from dign.evaluation.results import Results
from dign.models.preprocessing import Preprocessing
from dign.runs.foreign import ForeignModel, open_model
from dign.runs.foreign.entries import import_entry

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
        subject = foreign_subject(open_model(f"{entry}:{name}"), f"{entry}:{name}", digits)
        probabilities = subject.predict(subject.model, torch.zeros(2, 3, 8, 8), None)
        assert probabilities.shape == (2, 10) and probabilities.sum().item() == pytest.approx(2)
        assert subject.about.name == f"{entry}:{name}"


def test_the_path_of_modules_is_left_as_it_was(entry):
    before = list(sys.path)
    import_entry(f"{entry}:make_model")
    assert sys.path == before


def test_mistakes_are_named(entry, weights, digits, tmp_path):
    for name, message in (
        ("wrong_classes", "knows 7 classes, but digits has 10: name data with"),
        ("wrong_size", r"fails on images of shape \(2, 3, 8, 8\)"),
        ("broken", "RuntimeError: no such file as I want"),
        ("nothing", "gave a int"),
        ("exits", "SystemExit: --flag missing"),
        ("probabilities", "gives probabilities, where logits are expected"),
        ("not_a_number", "logits that are not finite"),
        ("missing", "has no attribute 'missing'"),
    ):
        with pytest.raises(UserError, match=message):
            foreign_subject(open_model(f"{entry}:{name}"), f"{entry}:{name}", digits)
    with pytest.raises(UserError, match="No module named"):
        import_entry("no_such_module:make_model")
    with pytest.raises(UserError, match=f"is a file: name its module, as in {entry}:make_model"):
        import_entry(f"{entry}.py:make_model")
    with pytest.raises(UserError, match="MODULE:FUNCTION"):
        import_entry("make_model")
    (tmp_path / "mine.pt").write_bytes(b"whatever")
    with pytest.raises(UserError, match=r"is not a file of torch.save, or is damaged"):
        open_model(f"{entry}:make_model", weights=tmp_path / "mine.pt")
    save_file({"other": torch.zeros(1)}, tmp_path / "other.safetensors")
    with pytest.raises(UserError, match="belongs to another model"):
        open_model(f"{entry}:make_model", weights=tmp_path / "other.safetensors")


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


def test_how_images_are_prepared_and_what_is_not_known_is_said(digits):
    network = nn.Sequential(nn.Flatten(), nn.Linear(192, 10))
    known = ForeignModel(network, "net", Preprocessing(8, (0.5,) * 3, (0.25,) * 3, "crop", 0.875, "bicubic"))
    normalized = "mean 0.5, 0.5, 0.5, std 0.25, 0.25, 0.25."
    assert describe_foreign(known, digits) == [f"net: images of 8x8 pixels, {normalized}"]
    pictures = replace(digits, name="folder:photos")
    assert describe_foreign(known, pictures) == [
        f"net: images of 8x8 pixels, crop fraction 0.875, bicubic, {normalized}"
    ]
    bare = ForeignModel(network, "net", classes=list("abcdefghij"))
    assert [line.partition(":")[0] for line in describe_foreign(bare, digits)] == [
        "net",
        "No normalization is known",
        "Its classes are called a, b, c and 7 more, those of digits 0, 1, 2 and 7 more",
    ]


def test_classes_in_another_order_are_measured_in_the_datas_order(digits):
    names = [str(digit) for digit in reversed(range(10))]
    model = ForeignModel(nn.Sequential(nn.Flatten(), nn.Linear(192, 10)), "net", classes=names)
    images = torch.rand(2, 3, 8, 8)
    before = model(images)
    subject = foreign_subject(model, "net", digits)
    assert torch.equal(subject.model(images), before.flip(1)) and len(describe_foreign(model, digits)) == 2


@pytest.mark.slow
def test_an_onnx_file_is_measured_at_the_size_that_it_fixes(digits, tmp_path, monkeypatch, capsys):
    pytest.importorskip("onnxscript", reason="needs the extra dign[onnx]")
    monkeypatch.chdir(tmp_path)
    network = nn.Sequential(nn.Flatten(), nn.Linear(192, 10)).eval()
    torch.onnx.export(network, (torch.rand(2, 3, 8, 8),), "net.onnx", dynamo=True, verbose=False)
    capsys.readouterr()
    only = ("--only", "contrast", "--severity", 3, "--out", "mine")
    assert command("--model", "net.onnx", "--data", "digits", *only) == 0
    shown = capsys.readouterr().err
    assert "net: images of 8x8 pixels." in shown and "unless you set --mean and --std" in shown
    expected = dign.evaluate(network, digits, dign.Conditions(corruptions=("contrast",), severities=(3,)))
    found = Results.load(tmp_path / "mine")
    assert found.clean.accuracy == expected.clean.accuracy and found.run.model == "net.onnx"
    assert found.corruptions["contrast"].accuracy == pytest.approx(expected.corruptions["contrast"].accuracy)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--mean", "1,2"), "invalid --mean '1,2': expected three numbers"),
        (("--std", "0,1,1"), "invalid --std '0,1,1': expected three numbers"),
        (("--trust", "--model", "no.pt2"), "There is no file no.pt2."),
    ],
)
def test_mistakes_in_options_are_named(tmp_path, monkeypatch, capsys, words, message):
    monkeypatch.chdir(tmp_path)
    assert command("--model", "net.onnx", "--data", "digits", *words) == 2
    assert message in capsys.readouterr().err
