"""Every method in every setting that a training loop may have."""

import shutil
from copy import deepcopy

import pytest
import torch
from torch import nn

from dign.core.errors import UserError
from dign.methods import METHODS, AugMix, DiGN
from dign.models import build

EVERY = [*METHODS, "dign+augmix"]


def make(key, **settings):
    return DiGN(**settings) + AugMix(**settings) if key == "dign+augmix" else METHODS[key](**settings)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.fixture
def model():
    return build("tinynet", classes=5, image_size=(8, 8))


@pytest.mark.parametrize("key", EVERY)
def test_float32(key, model, x, y):
    outcome = make(key)(model, x, y, generator=generator())
    outcome.loss.backward()
    assert outcome.loss.dtype == torch.float32 and outcome.loss.shape == ()
    assert outcome.logits.shape == (6, 5) and not outcome.logits.requires_grad
    for parameter in model.parameters():
        assert not parameter.requires_grad or torch.isfinite(parameter.grad).all()


@pytest.mark.parametrize("key", EVERY)
def test_bfloat16_throughout(key, model, x, y):
    outcome = make(key)(model.bfloat16(), x.bfloat16(), y, generator=generator())
    outcome.loss.backward()
    assert torch.isfinite(outcome.loss)


@pytest.mark.parametrize("key", EVERY)
def test_one_image(key, recorder, x, y):
    """With a model that can be trained on one."""
    outcome = make(key)(recorder, x[:1], y[:1], generator=generator())
    outcome.loss.backward()
    assert outcome.logits.shape[0] == 1 and torch.isfinite(outcome.loss)


@pytest.mark.parametrize(
    ("key", "settings"),
    [("dign", {"samples": 2.5}), ("augmix", {"width": 1.5}), ("augmix", {"depth": 1.5}), ("rse", {"ensemble": 2.0}),
     ("at", {"steps": 1.5}), ("augmax", {"steps": 1.5}), ("deepaugment", {"hidden": 1.5}), ("dign", {"samples": True})],
)  # fmt: skip
def test_counts_are_whole_numbers(key, settings):
    with pytest.raises(UserError, match=rf"{next(iter(settings))} must be a whole number of at least 1, not"):
        make(key, **settings)


@pytest.mark.parametrize("key", EVERY)
def test_autocast(key, model, x, y):
    method = make(key)
    exact = method(model, x, y, generator=generator()).loss.item()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        outcome = method(model, x, y, generator=generator())
        outcome.loss.backward()
    assert outcome.loss.dtype == torch.float32
    assert outcome.loss.item() == pytest.approx(exact, rel=0.15, abs=0.05)
    assert all(p.grad is None or torch.isfinite(p.grad).all() for p in model.parameters())


@pytest.mark.parametrize("key", ["augmix", "augmax", "deepaugment", "dign"])
def test_autocast_leaves_the_images_their_precision(key, recorder, x, y):
    plain = make(key).views(recorder, x, y, generator())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        cast = make(key).views(recorder, x, y, generator())
    for exact, view in zip(plain, cast, strict=True):
        assert view.dtype == torch.float32
        assert key == "augmax" or torch.equal(view, exact)  # whose weights follow the model's rounded gradients


@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs a C++ compiler on a CPU")
@pytest.mark.parametrize(("key", "backend"), [("dign", "inductor"), ("at", "aot_eager"), ("augmax", "aot_eager")])
def test_compiled(key, backend, x, y):
    """An attack needs a second graph, in eval mode and without parameters to differentiate, and gets one."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(192, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 5))
    expected = make(key)(deepcopy(model), x, y, generator=generator()).loss
    outcome = make(key)(torch.compile(model, backend=backend), x, y, generator=generator())
    torch.testing.assert_close(outcome.loss, expected, atol=1e-4, rtol=1e-4)
    outcome.loss.backward()
    assert all(module.training for module in model.modules())
    assert all(parameter.grad is not None for parameter in model.parameters())


@pytest.mark.parametrize("bfloat16", [False, True])
@pytest.mark.parametrize("key", EVERY)
def test_extreme_logits_stay_finite(key, bfloat16, x, y):
    """Logits of +-1e4 that saturate, in float32 and under autocast: loss, terms and gradients stay finite."""

    class Extreme(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(192, 5)

        def forward(self, x):
            return 1e4 * torch.tanh(100 * self.linear(x.flatten(1)))

    model = Extreme()
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=bfloat16):
        outcome = make(key)(model, x, y, generator=generator())
    outcome.loss.backward()
    assert outcome.logits.abs().max() > 9e3
    assert torch.isfinite(outcome.loss) and all(torch.isfinite(term) for term in outcome.terms.values())
    assert torch.isfinite(model.linear.weight.grad).all()


@pytest.mark.parametrize("key", EVERY)
def test_branches_apart_or_together_are_the_same_without_batch_norm(key, recorder, x, y):
    losses = [make(key, together=together)(recorder, x, y, generator=generator()).loss for together in (True, False)]
    torch.testing.assert_close(*losses)


@pytest.mark.parametrize("key", EVERY)
def test_label_smoothing_reaches_the_cross_entropy(key, recorder, x, y):
    losses = [make(key, label_smoothing=s)(recorder, x, y, generator=generator()).loss.item() for s in (0.0, 0.5)]
    assert abs(losses[0] - losses[1]) > 1e-4


@pytest.mark.parametrize("key", EVERY)
def test_the_generator_decides_and_the_batch_is_left_alone(key, recorder, x, y):
    before = x.clone()
    method = make(key)
    first, again, other = (method(recorder, x, y, generator=generator(seed)).loss.item() for seed in (3, 3, 4))
    assert first == again
    assert (first == other) == (key in ("standard", "at"))  # these draw nothing
    assert torch.equal(x, before)


@pytest.mark.parametrize("key", ["at", "trades", "augmax"])
def test_attacks_leave_batch_norm_and_modes_alone(key, normed_recorder, x, y):
    normed_recorder.train()
    make(key)(normed_recorder, x, y, generator=generator())
    assert all(module.training for module in normed_recorder.modules())
    assert normed_recorder.body[1].num_batches_tracked == 1, "only the training pass is counted"


def test_through_a_fabric_wrapper(model, x, y):
    from lightning_fabric import Fabric

    fabric = Fabric(accelerator="cpu", devices=1, precision="bf16-mixed")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    wrapped, optimizer = fabric.setup(model, optimizer)
    for key in ("at", "trades", "augmax", "dign+augmix"):
        wrapped.train()
        fabric.backward(make(key)(wrapped, x, y, generator=generator()).loss)
        optimizer.step()
        assert all(module.training for module in wrapped.modules())
