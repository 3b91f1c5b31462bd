import pytest
import torch

from dign.core.errors import UserError
from dign.methods import DiGN


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_dign(oracle, recorder, x, y):
    outcome, (p, *noisy), (clean, *seen) = oracle.run(DiGN(weight=0.7, samples=3, sigma_max=0.4), recorder, x, y)
    assert torch.equal(clean, x) and len(noisy) == 3
    expected = oracle.cross_entropy(p, y) + 0.7 * sum(oracle.kl(p, q) for q in noisy) / 3
    assert outcome.loss.item() == pytest.approx(expected, rel=1e-5)
    levels = torch.stack([(view - x).flatten(1).std(1) for view in seen])
    assert levels.std(0).min() > 0.01 and levels.std(1).min() > 0.01, "a level for each image and each draw"


def test_dign_differentiates_both_sides_of_its_divergence(recorder, x, y):
    """Equation (7): the gradient flows through p(x) as well, so it differs from one where p(x) is a constant."""
    method = DiGN(weight=5.0, samples=1, sigma_max=0.8)
    ours = torch.autograd.grad(method(recorder, x, y, generator=generator()).loss, list(recorder.parameters()))
    clean, noisy = recorder.seen[0].split(6)

    def gradient(constant):
        log_p, log_q = recorder.body(clean).log_softmax(1), recorder.body(noisy).log_softmax(1)
        target = log_p.detach() if constant else log_p
        loss = -log_p[range(6), y].mean() + 5.0 * (target.exp() * (target - log_q)).sum(1).mean()
        return torch.autograd.grad(loss, list(recorder.parameters()))

    for mine, flowing, constant in zip(ours, gradient(False), gradient(True), strict=True):
        torch.testing.assert_close(mine, flowing, atol=1e-6, rtol=1e-4)
        assert not torch.allclose(mine, constant, rtol=1e-2)


def test_dign_starts_late_and_grows(recorder, x, y):
    method = DiGN(sigma_max=0.3, weight=0.8, samples=2, start=0.5, ramp=0.2)
    assert method.cost.standard_steps == 2, "half of training with one pass, half with three"
    early = method.at(0.49)(recorder, x, y, generator=generator())
    (batch,) = recorder.trained_on
    assert len(batch) == len(x), "no noisy branch passes through the model"
    assert early.terms["consistency"] == 0 and early.loss == early.terms["cross_entropy"]
    weights = [method.at(progress).weight for progress in (0.0, 0.5, 0.55, 0.6, 0.7, 0.99)]
    assert weights == pytest.approx([0, 0, 0.2, 0.4, 0.8, 0.8])
    late = method.at(0.75)
    assert late == DiGN(sigma_max=0.3, weight=0.8, samples=2) and late.cost.standard_steps == 3
    with pytest.raises(UserError, match="start is a fraction of training"):
        DiGN(start=1)


def test_dign_for_certificates_learns_from_copies_of_one_level(oracle, recorder, x, y):
    method = DiGN(weight=0.7, samples=2, sigma_max=0.4, levels="fixed", learns_from="copies")
    outcome, (p, *noisy), (clean, *seen) = oracle.run(method, recorder, x, y)
    assert torch.equal(clean, x)
    expected = sum(oracle.cross_entropy(q, y) + 0.7 * oracle.kl(p, q) for q in noisy) / 2
    assert outcome.loss.item() == pytest.approx(expected, rel=1e-5)
    levels = torch.stack([(view - x).flatten(1).std(1) for view in seen])
    assert (levels - 0.4).abs().max() < 0.1, "every copy of every image has the one level"


def test_dign_learns_from_copies_without_a_weight_too(recorder, x, y):
    method = DiGN(weight=0.0, samples=1, learns_from="copies", start=0.5)
    assert method.cost.standard_steps == 1.5
    late = method.at(0.6)(recorder, x, y, generator=generator())
    assert late.terms["consistency"] == 0 and late.loss == late.terms["cross_entropy_of_noisy"]
    assert len(recorder.trained_on[0]) == 2 * len(x)
    assert list(method.at(0.1)(recorder, x, y).terms) == ["cross_entropy", "consistency"], "clean before the start"


@pytest.mark.parametrize("setting", ["levels", "learns_from"])
def test_dign_names_what_it_knows(setting):
    with pytest.raises(UserError, match=f"Unknown {setting} 'none'. Known: c?"):
        DiGN(**{setting: "none"})
