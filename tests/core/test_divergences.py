import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dign.core.divergences import jensen_shannon, kl, log_probabilities

logits = st.lists(st.floats(-1e4, 1e4, width=32), min_size=4, max_size=4).map(lambda row: torch.tensor([row]))


def by_hand(p, q):
    return sum(a * math.log(a / b) for a, b in zip(p, q, strict=True) if a > 0)


def distributions(count, classes=5, seed=0):
    return torch.randn(count, classes, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).softmax(-1)


def test_kl_is_the_sum_written_out():
    p, q = distributions(6), distributions(6, seed=1)
    expected = [by_hand(a, b) for a, b in zip(p.tolist(), q.tolist(), strict=True)]
    assert kl(p.log(), q.log()).tolist() == pytest.approx(expected)


def test_jensen_shannon_is_the_mean_divergence_from_the_mixture():
    p, q, r = (distributions(6, seed=seed) for seed in range(3))
    mixture = (p + q + r) / 3
    expected = [sum(by_hand(each[i].tolist(), mixture[i].tolist()) for each in (p, q, r)) / 3 for i in range(6)]
    assert jensen_shannon(p.log(), q.log(), r.log()).tolist() == pytest.approx(expected)


@given(logits, logits, logits)
def test_jensen_shannon_is_symmetric_bounded_and_finite_for_any_logits(a, b, c):
    p, q, r = map(log_probabilities, (a, b, c))
    value = jensen_shannon(p, q, r)
    assert torch.isfinite(value).all()
    assert -1e-6 <= value.item() <= math.log(3) + 1e-5
    torch.testing.assert_close(jensen_shannon(r, p, q), value, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(jensen_shannon(q, p, r), value, atol=1e-5, rtol=1e-5)


@given(logits)
def test_equal_distributions_do_not_diverge(a):
    p = log_probabilities(a)
    assert jensen_shannon(p, p, p).abs().item() < 1e-5
    assert kl(p, p).item() == 0


def test_jensen_shannon_of_three_certain_opinions_is_ln_3():
    certain = [torch.full((1, 3), -1e4).index_fill(1, torch.tensor(i), 1e4) for i in range(3)]
    assert jensen_shannon(*map(log_probabilities, certain)).item() == pytest.approx(math.log(3))


@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_gradients_are_finite_and_reach_every_argument(scale):
    a, b, c = (
        (scale * torch.randn(4, 5, generator=torch.Generator().manual_seed(seed))).requires_grad_() for seed in range(3)
    )
    loss = (
        jensen_shannon(*map(log_probabilities, (a, b, c))).sum() + kl(log_probabilities(a), log_probabilities(b)).sum()
    )
    for gradient in torch.autograd.grad(loss, (a, b, c)):
        assert torch.isfinite(gradient).all()
        assert scale > 1 or (gradient != 0).any()


def test_half_precision_logits_are_judged_in_float32():
    a = torch.randn(4, 5).bfloat16()
    assert log_probabilities(a).dtype == torch.float32
    assert log_probabilities(a.double()).dtype == torch.float64


def test_a_class_masked_everywhere_counts_for_nothing():
    generator = torch.Generator().manual_seed(0)
    a, b, c = (torch.randn(6, 5, generator=generator, dtype=torch.float64) for _ in range(3))
    kept = torch.tensor([0, 1, 3, 4])
    masked = [each.index_fill(1, torch.tensor(2), -math.inf) for each in (a, b, c)]
    without = [each[:, kept] for each in (a, b, c)]
    for divergence, count in ((kl, 2), (jensen_shannon, 3)):
        ours = [each.clone().requires_grad_() for each in masked[:count]]
        theirs = [each.clone().requires_grad_() for each in without[:count]]
        value = divergence(*map(log_probabilities, ours))
        expected = divergence(*map(log_probabilities, theirs))
        torch.testing.assert_close(value, expected)
        gradients = torch.autograd.grad(value.sum(), ours)
        for mine, reference in zip(gradients, torch.autograd.grad(expected.sum(), theirs), strict=True):
            torch.testing.assert_close(mine[:, kept], reference)
            assert (mine[:, 2] == 0).all()


def test_a_class_masked_in_one_distribution_only():
    p, q = torch.tensor([[0.25, 0.75, 0.0]]), torch.tensor([[0.5, 0.25, 0.25]])
    log_p, log_q = p.log().requires_grad_(), q.log().requires_grad_()
    assert kl(log_p, log_q).item() == pytest.approx(by_hand([0.25, 0.75], [0.5, 0.25]))
    assert kl(log_q, log_p).item() == math.inf, "q expects what p rules out"
    mixture = [0.375, 0.5, 0.125]
    expected = (by_hand(p[0].tolist(), mixture) + by_hand(q[0].tolist(), mixture)) / 2
    value = jensen_shannon(log_p, log_q)
    assert value.item() == pytest.approx(expected)
    for gradient in torch.autograd.grad(value.sum() + kl(log_p, log_q).sum(), (log_p, log_q)):
        assert torch.isfinite(gradient).all()


@pytest.mark.slow
@given(logits, logits, logits)
def test_the_convention_for_zeros_changes_no_bit_for_finite_logits(a, b, c):
    p, q, r = map(log_probabilities, (a, b, c))
    assert torch.equal(kl(p, q), (p.exp() * (p - q)).sum(-1))
    stacked = torch.stack((p, q, r))
    mixture = torch.logsumexp(stacked, dim=0) - math.log(3)
    assert torch.equal(jensen_shannon(p, q, r), (stacked.exp() * (stacked - mixture)).sum(-1).mean(0))
