"""Exported files give PyTorch's logits, clean and corrupted, for batches of any size, or are not kept."""

import json
import shutil

import pytest
import torch

from dign.core.errors import UserError
from dign.corruptions import corrupt
from dign.publish.export import _largest_difference, export_ensemble, export_run
from dign.runs.classifier import load_model
from dign.runs.config import RunConfig
from dign.training.train import train


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    config = RunConfig.from_mapping({"data": "digits", "size": 8, "epochs": 1, "method": "rse", "batch_size": 128})
    return train(config, tmp_path_factory.mktemp("export") / "run", quiet=True)


@pytest.fixture(scope="module")
def images(run):
    return run.data().test.images[50:73]


@pytest.mark.slow
def test_onnx(run, images, tmp_path):
    pytest.importorskip("onnxscript", reason="needs the extra dign[onnx]")
    onnxruntime = pytest.importorskip("onnxruntime", reason="needs the extra dign[onnx]")
    exported = export_run(run, tmp_path / "model.onnx", images=8)
    assert exported.images == 40 and exported.difference < 1e-4 and exported.single_pass, "RSE averages, the file not"
    assert [path.name for path in tmp_path.iterdir()] == ["model.onnx"], "the weights are inside"
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    for pixels in (images, corrupt(images, "impulse_noise", 5), corrupt(images, "contrast", 5)):
        for count in (1, 2, 23):
            x = pixels[:count].float() / 255
            (logits,) = session.run(["logits"], {"images": x.numpy()})
            torch.testing.assert_close(torch.from_numpy(logits), load_model(run.path)(x).detach(), rtol=1e-3, atol=1e-4)
    about = session.get_modelmeta().custom_metadata_map
    assert json.loads(about["classes"]) == run.classes and json.loads(about["image_size"]) == [8, 8]


@pytest.mark.slow
def test_a_program_of_torch_export(run, images, tmp_path):
    exported = export_run(run, tmp_path / "model.pt2", images=8)
    assert exported.difference < 1e-4
    extra = {"classes": ""}
    program = torch.export.load(str(tmp_path / "model.pt2"), extra_files=extra).module()
    for count in (1, 23):
        x = images[:count].float() / 255
        torch.testing.assert_close(program(x), load_model(run.path)(x), msg="the calibrated logits")
    assert json.loads(extra["classes"]) == run.classes


def test_a_file_that_disagrees_is_not_kept(run, tmp_path, monkeypatch):
    batches = [torch.rand(5, 3, 8, 8)]
    model = run.model()
    assert _largest_difference(model, model, batches) < 1e-5
    for wrong in (
        lambda x: model(x) + 0.1,
        lambda x: model(x).flip(0),
        lambda x: model(x) if len(x) > 1 else -model(x),
        lambda x: model(x) * float("nan"),
    ):
        with pytest.raises(UserError, match="not kept"):
            _largest_difference(model, wrong, batches)
    monkeypatch.setattr(
        "dign.publish.export._write_program",
        lambda model, run, path: path.write_bytes(b"x") and (lambda x: 9 + model(x)),
    )
    with pytest.raises(UserError, match="not kept"):
        export_run(run, tmp_path / "model.pt2", images=2)
    assert list(tmp_path.iterdir()) == []


def test_another_ending_is_named(run, tmp_path):
    with pytest.raises(UserError, match=r"expected a name in \.onnx, or in \.pt2"):
        export_run(run, tmp_path / "model.pth")


@pytest.mark.slow
def test_an_ensemble_is_one_graph(run, images, tmp_path):
    config = {"data": "digits", "size": 8, "epochs": 1, "method": "standard", "seed": 1}
    twin = train(config, tmp_path / "b", quiet=True)
    exported = export_ensemble([run.path, twin.path], tmp_path / "both.pt2", images=4)
    assert exported.difference < 1e-4 and exported.single_pass, "RSE averages"
    program = torch.export.load(str(tmp_path / "both.pt2")).module()
    x = images[:7].float() / 255
    expected = sum(load_model(each.path)(x).softmax(1) for each in (run, twin)) / 2
    torch.testing.assert_close(program(x).exp(), expected)


@pytest.mark.slow
def test_an_ensemble_as_onnx(run, tmp_path, dign_command):
    pytest.importorskip("onnxscript", reason="needs the extra dign[onnx]")
    pytest.importorskip("onnxruntime", reason="needs the extra dign[onnx]")
    shutil.copytree(run.path, tmp_path / "other")
    where = f"ensemble:{run.path},{tmp_path / 'other'}"
    code, _, said = dign_command("export", where, "--out", tmp_path / "both.onnx", "--images", 2)
    assert code == 0 and "of PyTorch's on 10 images" in said
