"""What does not depend on the number of threads, bit for bit; and what does, by how little."""

import pytest
import torch
from torch import nn

from dign.augment.train_transforms import TrainTransforms
from dign.corruptions import NAMES, corrupt
from dign.methods import METHODS
from dign.metrics import Calibration
from dign.models import build


@pytest.fixture
def with_threads():
    """work() with one thread and with three."""
    before = torch.get_num_threads()

    def both(work):
        outcomes = []
        for count in (1, 3):
            torch.set_num_threads(count)
            outcomes.append(work())
        return outcomes

    yield both
    torch.set_num_threads(before)


def generator():
    return torch.Generator().manual_seed(0)


def images(count=96):
    return torch.rand((count, 3, 32, 32), generator=generator())


@pytest.mark.parametrize("name", NAMES)
def test_corruptions_are_the_same_bits(with_threads, name, monkeypatch):
    monkeypatch.setattr("dign.corruptions.engine._CHUNK_VALUES", 10 * 3 * 32 * 32)  # several chunks for each thread
    batch = (images() * 255).to(torch.uint8)
    one, three = with_threads(lambda: corrupt(batch, name, 3))
    assert torch.equal(one, three)


@pytest.mark.parametrize("key", ["dign", "rse", "augmix", "deepaugment", "cutmix"])
def test_what_methods_show_the_model_is_the_same_bits_but_for_a_random_network(with_threads, key):
    """Everything is drawn from a generator, in one order; Noise2Net's convolutions may differ in the last bit."""
    x, y = images(), torch.zeros(96, dtype=torch.long)
    model = nn.Sequential(nn.Flatten(), nn.Linear(3072, 4))
    one, three = with_threads(lambda: METHODS[key]().prepare(model, x, y, generator()))
    for first, second in zip([one.x, *one.views[0]], [three.x, *three.views[0]], strict=True):
        torch.testing.assert_close(first, second, atol=1e-5 if key == "deepaugment" else 0, rtol=0)


def test_training_transforms_and_counts_are_the_same_bits(with_threads):
    transforms = TrainTransforms(crop=4, flip=True, rotation=5.0, brightness=0.2, contrast=0.2, saturation=0.2)
    one, three = with_threads(lambda: transforms(images(), generator()))
    assert torch.equal(one, three)
    probabilities = torch.softmax(images().flatten(1)[:, :10], dim=1).repeat(1000, 1)

    def count():
        calibration = Calibration()
        calibration.update(probabilities, torch.zeros(len(probabilities), dtype=torch.long))
        return calibration.state()

    one, three = with_threads(count)
    assert torch.equal(one["counts"], three["counts"]) and torch.equal(one["correct"], three["correct"])
    torch.testing.assert_close(one["deviation"], three["deviation"], rtol=1e-12, atol=0)


def test_a_model_s_answers_and_gradients_agree_to_float_precision_only(with_threads):
    """Sums inside convolutions are cut into as many parts as there are threads: torch promises no more than this."""

    def answers():
        model = build("tinynet", classes=10, image_size=(32, 32), seed=0)
        logits = model(images())
        logits.square().mean().backward()
        return logits.detach(), torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])

    one, three = with_threads(answers)
    for first, second in zip(one, three, strict=True):
        torch.testing.assert_close(first, second, atol=1e-5, rtol=1e-4)
