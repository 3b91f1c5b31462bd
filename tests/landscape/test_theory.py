"""The checks of the theory on models for which the answer is known."""

import json

import pytest
import torch
from torch import nn

from dign.landscape.bounds import loss_difference_bound
from dign.landscape.curvature import hessian
from dign.landscape.gradients import gradient_norms, image_losses, input_gradients
from dign.landscape.lanczos import extreme_eigenvalues
from dign.landscape.theory import TheoryPlan, measure_theory
from dign.landscape.verdicts import theory_summary

PLAN = TheoryPlan(sigmas=(1e-5, 1e-3, 0.3), radii=(1e-4, 0.1, 3.0), draws=12, tail_draws=16)


def network(activation: nn.Module) -> nn.Module:
    torch.manual_seed(3)
    model = nn.Sequential(nn.Flatten(), nn.Linear(12, 32), activation, nn.Linear(32, 5))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(3)
    return model


def checked(model: nn.Module, plan: TheoryPlan = PLAN) -> dict:
    generator = torch.Generator().manual_seed(0)
    images = torch.randint(0, 256, (40, 3, 2, 2), generator=generator, dtype=torch.uint8)
    labels = torch.randint(0, 5, (40,), generator=generator)
    return theory_summary(measure_theory(model, images, labels, plan), plan, 12)


@pytest.fixture(scope="module")
def relu() -> dict:
    return checked(network(nn.ReLU()))


@pytest.fixture(scope="module")
def smooth() -> dict:
    return checked(network(nn.Tanh()))


@pytest.mark.parametrize("equation", ["equation_8", "equation_9"])
def test_ratios_tend_to_one_as_the_noise_shrinks(equation, relu, smooth) -> None:
    for summary in (relu, smooth):
        part = summary[equation]
        assert part["ratio"][0] == pytest.approx(1, abs=1e-3)
        assert part["median"][0] == pytest.approx(1, abs=1e-3)
        assert abs(part["ratio"][2] - 1) > abs(part["ratio"][0] - 1)


def test_proposition_1_is_rounding_for_relu_and_not_for_tanh(relu, smooth) -> None:
    assert relu["proposition_1"]["q90"] < 1e-12
    assert smooth["proposition_1"]["q10"] > 1e-2
    assert relu["consequences"]["largest_eigenvalue_below_trace"] == 100
    assert relu["consequences"]["smallest_eigenvalue_negative"] == 0
    assert smooth["consequences"]["smallest_eigenvalue_negative"] > 50


def test_the_gradient_is_below_the_trace_for_every_network(relu, smooth) -> None:
    assert relu["consequences"]["gradient_below_trace"] == smooth["consequences"]["gradient_below_trace"] == 100


def test_theorem_1_holds_at_small_radius_in_random_directions(relu, smooth) -> None:
    for summary in (relu, smooth):
        assert summary["theorem_1"]["random_holds"][0] == 100
        assert summary["theorem_1"]["random_slack"][0] > 1
        assert summary["theorem_1"]["steepest_slack"][0] == pytest.approx(1, abs=0.01)


def test_theorem_1_needs_its_o_term_along_the_gradient() -> None:
    """Logistic regression: g and H point the same way, so the third derivative decides, at every radius."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(3, 2, bias=False)).double()
    with torch.no_grad():
        model[1].weight.copy_(torch.tensor([[1.0, 0, 0], [0, 0, 0]]))
    x, y = torch.ones(1, 3, 1, 1, dtype=torch.float64), torch.tensor([0])
    loss, gradient, _ = input_gradients(model, x, y)
    with hessian(model, x, y) as h:
        curvature = extreme_eigenvalues(h).spectral_norm
    for radius in (0.1, 0.01):
        change = image_losses(model, x + radius * gradient / gradient.norm(), y) - loss
        assert float(change) > float(loss_difference_bound(radius, gradient_norms(model, x, y), curvature))


def test_bounds_are_vacuous_where_real_changes_live(relu) -> None:
    tail, norm = relu["theorem_2"], relu["lemma_1"]
    assert tail["changes_where_informative"] == 0
    assert norm["informative_from"] > 3 * norm["typical_norm"]
    for bound, empirical in zip(norm["bound"], norm["empirical"], strict=True):
        assert empirical is None or empirical <= bound
    start = tail["informative_from"]["median"]
    assert all(value > 0 for t, value in zip(tail["t"], tail["median_bound"], strict=True) if t < start / 2)
    for bound, sharper in zip(tail["bound"], tail["chernoff"], strict=True):
        assert sharper <= bound + 1e-9 <= 1e-8


def test_a_tie_in_a_max_pool_is_a_kink_that_dequantizing_avoids() -> None:
    """Flat images: every pixel ties, and the divergence under the smallest noise is not sigma^2/2 Tr G."""

    class Pool(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.head = nn.Linear(3, 5)

        def forward(self, x):
            return self.head(3 * torch.nn.functional.max_pool2d(x, 2).flatten(1))

    torch.manual_seed(0)
    model, images, labels = (
        Pool(),
        torch.full((40, 3, 2, 2), 128, dtype=torch.uint8),
        torch.zeros(40, dtype=torch.int64),
    )
    ratios = []
    for dequantize in (False, True):
        plan = TheoryPlan(sigmas=(1e-6,), radii=(1e-3,), draws=16, tail_draws=2, dequantize=dequantize)
        ratios.append(theory_summary(measure_theory(model, images, labels, plan), plan, 12)["equation_8"]["ratio"][0])
    assert abs(ratios[0] - 1) > 0.1
    assert ratios[1] == pytest.approx(1, abs=0.01)


def test_summary_is_strict_json(relu, smooth) -> None:
    for summary in (relu, smooth):
        json.dumps(summary, allow_nan=False)


def test_the_model_stays_as_it_was() -> None:
    model = network(nn.ReLU()).train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    checked(model, TheoryPlan(sigmas=(0.1,), radii=(0.1,), draws=2, tail_draws=2))
    assert model.training and all(p.dtype == torch.float32 and p.requires_grad for p in model.parameters())
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
