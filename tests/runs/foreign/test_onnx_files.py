"""ONNX files: the network that was exported, whatever the layout, type and batch of its input."""

import numpy as np
import pytest
import torch
from torch import nn

from dign.core.errors import UserError
from dign.models.preprocessing import Preprocessing
from dign.runs.foreign import open_model

onnx = pytest.importorskip("onnx", reason="needs the extra dign[onnx]")
pytest.importorskip("onnxruntime", reason="needs the extra dign[onnx]")
WEIGHTS = np.random.default_rng(0).normal(size=(3 * 4 * 4, 5)).astype(np.float32)


def write(path, shape=("N", 3, 4, 4), kind=onnx.TensorProto.FLOAT, softmax=False, metadata=None, inputs=1):
    """A linear classifier of 5 classes on images of 4x4 pixels."""
    helper = onnx.helper
    weights = WEIGHTS.astype(helper.tensor_dtype_to_np_dtype(kind))
    nodes = [helper.make_node("Flatten", ["images"], ["flat"]), helper.make_node("MatMul", ["flat", "w"], ["y"])]
    nodes += [helper.make_node("Softmax", ["y"], ["p"])] if softmax else []
    graph = helper.make_graph(
        nodes,
        "linear",
        [helper.make_tensor_value_info("images" if i == 0 else f"more{i}", kind, shape) for i in range(inputs)],
        [helper.make_tensor_value_info("p" if softmax else "y", kind, (shape[0], 5))],
        [onnx.numpy_helper.from_array(weights, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    helper.set_model_props(model, metadata or {})
    onnx.save(model, path)
    return path


@pytest.fixture
def images():
    return torch.rand(7, 3, 4, 4, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("batch", ["N", 1, 3])
def test_logits_are_those_of_the_network_at_any_batch_size(tmp_path, images, batch):
    model = open_model(write(tmp_path / "net.onnx", (batch, 3, 4, 4)))
    assert torch.allclose(model(images), images.flatten(1) @ torch.from_numpy(WEIGHTS), atol=1e-5)
    assert (model.name, model.preprocessing.size, model.classes, model.normalizes) == ("net", 4, None, False)


def test_channels_may_come_last(tmp_path, images):
    model = open_model(write(tmp_path / "net.onnx", ("N", 4, 4, 3)))
    expected = images.permute(0, 2, 3, 1).flatten(1) @ torch.from_numpy(WEIGHTS)
    assert torch.allclose(model(images), expected, atol=1e-5)


def test_half_precision_is_converted(tmp_path, images):
    model = open_model(write(tmp_path / "net.onnx", kind=onnx.TensorProto.FLOAT16))
    logits = model(images)
    assert logits.dtype == torch.float32
    assert torch.allclose(logits, images.flatten(1) @ torch.from_numpy(WEIGHTS), atol=0.1)


def test_a_softmax_at_the_end_is_undone(tmp_path, images):
    model = open_model(write(tmp_path / "net.onnx", softmax=True))
    expected = (images.flatten(1) @ torch.from_numpy(WEIGHTS)).softmax(1)
    assert model.gives_probabilities and torch.allclose(model(images).softmax(1), expected, atol=1e-5)


def test_normalization_is_given_or_stands_beside_the_file(tmp_path, images):
    path = write(tmp_path / "net.onnx")
    expected = ((images - 0.5) / 0.25).flatten(1) @ torch.from_numpy(WEIGHTS)
    given = open_model(path, preprocessing=Preprocessing(mean=(0.5,) * 3, std=(0.25,) * 3))
    (tmp_path / "preprocessor_config.json").write_text('{"image_mean": [0.5,0.5,0.5], "image_std": [0.25,0.25,0.25]}')
    for model in (given, open_model(path)):
        assert torch.allclose(model(images), expected, atol=1e-4)


def test_a_file_of_dign_brings_its_classes_and_normalizes(tmp_path):
    model = open_model(write(tmp_path / "net.onnx", metadata={"dign": "0.1", "classes": '["a","b","c","d","e"]'}))
    assert model.normalizes and model.classes == list("abcde")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: path.write_bytes(b"no model"), r"net.onnx is not an ONNX file that can be run: "),
        (lambda path: write(path, inputs=2), "must take images .* as its only input, but takes images"),
        (lambda path: write(path, shape=("N", 48)), "must take images .* as its only input"),
        (lambda path: write(path, kind=onnx.TensorProto.INT64), r"takes tensor\(int64\), where"),
        (lambda path: None, r"There is no file .*net.onnx"),
    ],
)
def test_mistakes_are_one_sentence(tmp_path, make, message):
    make(tmp_path / "net.onnx")
    with pytest.raises(UserError, match=message):
        open_model(tmp_path / "net.onnx")
    with pytest.raises(UserError, match="has weights of its own: leave out `weights`"):
        open_model(write(tmp_path / "other.onnx"), weights="x.pth")


def test_images_of_another_size_are_the_datas_fault(tmp_path):
    from dign.evaluation.predictors import check_logits

    model = open_model(write(tmp_path / "net.onnx"))
    with pytest.raises(UserError, match="takes images of 4 pixels and no others: leave out `size`, or export it for 8"):
        open_model(tmp_path / "net.onnx", preprocessing=Preprocessing(size=8))
    with pytest.raises(UserError, match=r"net fails on images of shape \(2, 3, 8, 8\): "):
        check_logits("net", model, (3, 8, 8))


def test_the_network_of_torch_survives_the_way_through_a_file(tmp_path):
    pytest.importorskip("onnxscript", reason="needs the extra dign[onnx]")
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(16, 5)).eval()
    images = torch.rand(2, 3, 4, 4)
    torch.onnx.export(network, (images,), tmp_path / "net.onnx", dynamo=True, verbose=False)
    assert torch.allclose(open_model(tmp_path / "net.onnx")(images), network(images), atol=1e-5)
