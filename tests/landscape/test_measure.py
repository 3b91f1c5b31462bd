"""Figure 2's quantities: against a slow loop, independent of the batch size, and within memory."""

import math

import pytest
import torch
from torch import nn

from dign.core.errors import UserError
from dign.core.image_rng import BLOCK_SIZE, image_noise
from dign.landscape import gradient_norms, hessian_traces, image_losses
from dign.landscape.measure import Plan, default_radii, measure

COUNT = 70  # more than two blocks of noise


@pytest.fixture
def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(12, 16), nn.Tanh(), nn.Linear(16, 4))


@pytest.fixture
def images() -> torch.Tensor:
    return torch.randint(0, 256, (COUNT, 3, 2, 2), generator=torch.Generator().manual_seed(1), dtype=torch.uint8)


@pytest.fixture
def labels() -> torch.Tensor:
    return torch.randint(0, 4, (COUNT,), generator=torch.Generator().manual_seed(2))


def test_noise_belongs_to_the_image_not_to_the_batch() -> None:
    whole = image_noise(torch.zeros(100, 3, 2, 2), first=0, seed=5, purpose="a", draw=0)
    for first, last in [(0, 1), (3, 40), (31, 33), (BLOCK_SIZE, 2 * BLOCK_SIZE), (64, 100)]:
        part = image_noise(torch.zeros(last - first, 3, 2, 2), first=first, seed=5, purpose="a", draw=0)
        assert torch.equal(part, whole[first:last])
    assert abs(float(whole.mean())) < 0.1 and abs(float(whole.std()) - 1) < 0.1
    for other in [{"seed": 6}, {"purpose": "b"}, {"draw": 1}]:
        options = {"seed": 5, "purpose": "a", "draw": 0, **other}
        assert not torch.equal(image_noise(torch.zeros(100, 3, 2, 2), first=0, **options), whole)


def test_against_a_loop_over_single_images(model, images, labels) -> None:
    plan = Plan(radii=(0.0, 0.5, 2.0), draws=2, seed=3)
    found = measure(model, images, labels, plan, batch_size=16)
    x = images.float() / 255
    for i in (0, 33, 69):
        image, label = x[i : i + 1], labels[i : i + 1]
        base = image_losses(model, image, label)
        for column, radius in enumerate(plan.radii):
            changes, right = [], []
            for draw in range(2):
                u = image_noise(image, first=i, seed=3, purpose="radius", draw=draw)
                moved = image + radius * u / u.norm()
                changes.append(float((image_losses(model, moved, label) - base).abs()))
                right.append(float(model(moved).argmax() == label))
            assert float(found.loss_difference[i, column]) == pytest.approx(sum(changes) / 2, abs=1e-6)
            assert float(found.accuracy[i, column]) == pytest.approx(sum(right) / 2)
    torch.testing.assert_close(found.gradient_norm, gradient_norms(model, x, labels))
    torch.testing.assert_close(found.panel("first_order")[:, 2], 2 * found.gradient_norm)
    torch.testing.assert_close(found.panel("second_order")[:, 2], 2 * found.curvature)
    assert float(found.panel("accuracy")[:, 0].mean()) == pytest.approx(100 * float(found.correct.mean()))


def test_curvature_is_that_of_the_hessian(model, images, labels) -> None:
    found = measure(model, images, labels, Plan(radii=(1.0,), draws=64))
    exact = hessian_traces(model.double(), images.double() / 255, labels, draws=64)[1].value
    assert float(found.curvature.double().mean()) == pytest.approx(float(exact.mean()), rel=0.1)


def test_results_do_not_depend_on_the_batch_size(model, images, labels) -> None:
    plan = Plan(radii=(0.5, 2.0), draws=2)
    one, other = (measure(model, images, labels, plan, batch_size=size) for size in (7, 64))
    for name in ("loss", "gradient_norm", "curvature", "loss_difference", "accuracy"):
        torch.testing.assert_close(getattr(one, name), getattr(other, name), rtol=1e-4, atol=1e-6)


def test_passes_are_as_many_as_the_plan_says(model, images, labels) -> None:
    plan = Plan(radii=(0.0, 0.5, 2.0), draws=3)
    forward, backward = [], []
    model.register_forward_hook(lambda module, inputs, output: forward.append(len(output)))
    model[0].register_full_backward_hook(lambda *_: backward.append(1))
    measure(model, images, labels, plan, batch_size=COUNT)
    assert len(backward) == plan.gradient_evaluations == 7
    assert len(forward) == plan.gradient_evaluations + plan.forward_passes == 7 + 6


def test_progress_is_told(model, images, labels) -> None:
    seen = []
    measure(model, images, labels, Plan(radii=(1.0,), draws=1), batch_size=32, progress=lambda *a: seen.append(a))
    assert seen == [(32, 70), (64, 70), (70, 70)]


def test_summary_has_means_and_standard_errors_over_images(model, images, labels) -> None:
    found = measure(model, images, labels, Plan(radii=(0.5, 2.0), draws=1))
    panel = found.summary()["panels"]["loss_difference"]
    values = found.loss_difference.double()
    assert panel["mean"] == pytest.approx(values.mean(0).tolist())
    assert panel["standard_error"] == pytest.approx((values.std(0) / math.sqrt(COUNT)).tolist())


def test_default_radii_end_at_the_norm_of_the_strongest_training_noise() -> None:
    radii = default_radii(3072)
    assert len(radii) == 8 and radii[-1] == pytest.approx(0.2 * math.sqrt(3072), abs=1e-3)


@pytest.mark.parametrize("wrong", [{"radii": ()}, {"radii": (-1.0,)}, {"radii": (1.0,), "eta": 0.0}])
def test_wrong_plans_are_refused(wrong) -> None:
    with pytest.raises(UserError):
        Plan(**wrong)


def test_no_images_is_refused(model, images, labels) -> None:
    with pytest.raises(UserError, match="no images"):
        measure(model, images[:0], labels[:0], Plan(radii=(1.0,)))
