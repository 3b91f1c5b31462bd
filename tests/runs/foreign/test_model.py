"""A foreign network as a module from images in [0,1] to logits."""

import torch
from torch import nn

from dign.models.preprocessing import Preprocessing
from dign.runs.foreign import ForeignModel


class Constant(nn.Module):
    def __init__(self, *outputs):
        super().__init__()
        self.outputs = torch.tensor([outputs])

    def forward(self, images):
        return self.outputs.expand(len(images), -1)


def test_images_are_normalized_and_not_written_to():
    images = torch.full((2, 3, 1, 1), 0.75)
    model = ForeignModel(nn.Flatten(), "x", Preprocessing(mean=(0.5, 0.25, 0.75), std=(0.5, 0.25, 1.0)))
    assert torch.equal(model(images), torch.tensor([[0.5, 2.0, 0.0]] * 2))
    assert torch.equal(images, torch.full((2, 3, 1, 1), 0.75))
    assert torch.equal(ForeignModel(nn.Flatten(), "x")(images), images.flatten(1))


def test_probabilities_become_logits_with_the_same_softmax():
    model = ForeignModel(Constant(0.25, 0.75, 0.0), "x", gives_probabilities=True)
    logits = model(torch.zeros(1, 3, 1, 1))
    assert logits.isfinite().all() and torch.allclose(logits.softmax(1), torch.tensor([[0.25, 0.75, 0.0]]))


def test_logits_come_in_the_order_of_the_data():
    model = ForeignModel(Constant(1.0, 2.0, 3.0), "x", classes=["Golden Retriever", "cat", "bird"])
    assert model.reorder(["bird", "cat", "golden_retriever"])
    assert model(torch.zeros(1, 3, 1, 1)).tolist() == [[3.0, 2.0, 1.0]]
    assert model.classes == ["bird", "cat", "golden_retriever"]


def test_other_classes_are_left_in_their_order():
    for known in (None, ["a", "b"], ["a", "a"]):
        model = ForeignModel(Constant(1.0, 2.0), "x", classes=known)
        assert not model.reorder(["a", "c"])
        assert model(torch.zeros(1, 3, 1, 1)).tolist() == [[1.0, 2.0]] and model.classes == known
