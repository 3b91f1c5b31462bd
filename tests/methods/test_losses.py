"""Every loss against a slow and obvious one: what the model was shown is recorded, the loss worked out from it."""

import math

import pytest
import torch

from dign.core.errors import UserError
from dign.methods import AT, RSE, TRADES, AugMax, AugMix, DeepAugment, DiGN, DiGNWithoutCR, Standard


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def probabilities(model, batch):
    """Softmax in float64 as lists, so that the formulas below are plain arithmetic."""
    with torch.no_grad():
        return torch.softmax(model.body(batch).double(), 1).tolist()


def cross_entropy(p, y):
    return -sum(math.log(row[label]) for row, label in zip(p, y.tolist(), strict=True)) / len(p)


def kl(p, q):
    return sum(sum(a * math.log(a / b) for a, b in zip(r, s, strict=True)) for r, s in zip(p, q, strict=True)) / len(p)


def jensen_shannon(*ps):
    mixture = [[sum(values) / len(ps) for values in zip(*rows, strict=True)] for rows in zip(*ps, strict=True)]
    return sum(kl(p, mixture) for p in ps) / len(ps)


def run(method, recorder, x, y):
    """The outcome, and the batches of the training pass: together they were one tensor."""
    outcome = method(recorder, x, y, generator=generator())
    (batch,) = recorder.trained_on
    return outcome, [probabilities(recorder, part) for part in batch.split(len(x))], batch.split(len(x))


def test_standard(recorder, x, y):
    outcome, (p,), (seen,) = run(Standard(), recorder, x, y)
    assert torch.equal(seen, x)
    assert outcome.loss.item() == pytest.approx(cross_entropy(p, y), rel=1e-5)
    torch.testing.assert_close(outcome.logits, recorder.body(x).detach())


@pytest.mark.parametrize("method", [RSE(sigma=0.3), DiGNWithoutCR(sigma_max=0.3)])
def test_noise_alone(recorder, x, y, method):
    outcome, (p,), (seen,) = run(method, recorder, x, y)
    assert outcome.loss.item() == pytest.approx(cross_entropy(p, y), rel=1e-5)
    levels = (seen - x).flatten(1).std(1)
    assert (levels.std() > 0.05) == isinstance(method, DiGNWithoutCR), "one level for all, or one for each image"
    assert levels.max() < 0.36


def test_rse_predicts_with_the_mean_of_probabilities(recorder, x):
    recorder.eval()
    predicted = RSE(sigma=0.3, ensemble=4).predict(recorder, x, generator())
    mean = torch.tensor([probabilities(recorder, batch) for batch in recorder.seen]).mean(0)
    assert len(recorder.seen) == 4 and not torch.equal(recorder.seen[0], recorder.seen[1])
    torch.testing.assert_close(predicted, mean, atol=1e-5, rtol=0)


def test_dign(recorder, x, y):
    outcome, (p, *noisy), (clean, *seen) = run(DiGN(weight=0.7, samples=3, sigma_max=0.4), recorder, x, y)
    assert torch.equal(clean, x) and len(noisy) == 3
    expected = cross_entropy(p, y) + 0.7 * sum(kl(p, q) for q in noisy) / 3
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


def plain_attack(recorder, x, objective, radius, steps, step_size, start):
    """PGD in l_inf, image by image, with the simplest code that could work."""
    attacked = []
    for i, image in enumerate(x):
        delta = start[i].clone()
        for _ in range(steps):
            delta.requires_grad_()
            (gradient,) = torch.autograd.grad(objective(recorder.body((image + delta)[None])[0], i), delta)
            delta = (delta.detach() + step_size * gradient.sign()).clamp(-radius, radius)
            delta = (image + delta).clamp(0, 1) - image
        attacked.append(image + delta)
    return torch.stack(attacked)


def test_at(recorder, x, y):
    outcome, (p,), (seen,) = run(AT(), recorder, x, y)
    radius = 8 / 255
    objective = lambda logits, i: -logits.log_softmax(0)[y[i]]  # noqa: E731
    expected = plain_attack(recorder, x, objective, radius, 7, 2.5 * radius / 7, torch.zeros_like(x))
    torch.testing.assert_close(seen, expected, atol=1e-5, rtol=0)
    assert outcome.loss.item() == pytest.approx(cross_entropy(p, y), rel=1e-5)
    clean = cross_entropy(probabilities(recorder, x), y)
    assert outcome.loss.item() > clean


def test_trades(recorder, x, y):
    outcome, (p, q), (clean, seen) = run(TRADES(weight=3.0), recorder, x, y)
    radius = 8 / 255
    target = recorder.body(x).detach().softmax(1)

    def objective(logits, i):
        return (target[i] * (target[i].log() - logits.log_softmax(0))).sum()

    start = (1e-3 * torch.randn(x.shape, generator=generator())).clamp(-radius, radius)
    start = (x + start).clamp(0, 1) - x
    expected = plain_attack(recorder, x, objective, radius, 7, 2.5 * radius / 7, start)
    assert torch.equal(clean, x)
    assert (seen - expected).abs().gt(1e-5).float().mean() < 0.01, "signs may differ where a gradient is about zero"
    assert outcome.loss.item() == pytest.approx(cross_entropy(p, y) + 3 * kl(p, q), rel=1e-4)
    assert outcome.terms["adversarial_consistency"] > 0


def test_augmix(recorder, x, y):
    outcome, (p, first, second), (clean, one, two) = run(AugMix(), recorder, x, y)
    assert torch.equal(clean, x) and not torch.equal(one, two)
    assert outcome.loss.item() == pytest.approx(cross_entropy(p, y) + 12 * jensen_shannon(p, first, second), rel=1e-4)


def test_augmax(recorder, x, y):
    outcome, (p, first, second), (clean, _, _) = run(AugMax(), recorder, x, y)
    assert torch.equal(clean, x)
    assert outcome.loss.item() == pytest.approx(cross_entropy(p, y) + 12 * jensen_shannon(p, first, second), rel=1e-4)


def test_augmax_climbs_on_the_mixing_weights_alone(recorder, x, y):
    """Every attacked batch is a mixture of the same chains; the last one is harder than the first."""
    method = AugMax(steps=20, severity=8.0)
    outcome = method(recorder, x, y, generator=generator())
    chains = method.chains(x, 6, generator())[:, 3:].double() / 255
    attacked = [batch for batch, training in zip(recorder.seen, recorder.modes, strict=True) if not training]
    assert len(attacked) == 20
    worst = recorder.trained_on[0].split(6)[2]
    for batch in (attacked[0], attacked[-1], worst):
        for i in range(6):
            basis = torch.cat((x[i][None].double(), chains[i])).flatten(1).T
            weights = torch.linalg.lstsq(basis, batch[i].double().flatten()[:, None], driver="gelsd").solution[:, 0]
            torch.testing.assert_close(basis @ weights, batch[i].double().flatten(), atol=1e-5, rtol=0)
            assert weights.sum().item() == pytest.approx(1, abs=1e-3)
    losses = [cross_entropy(probabilities(recorder, batch), y) for batch in (attacked[0], worst)]
    assert losses[1] > losses[0]
    assert torch.isfinite(outcome.loss)


def test_deepaugment(recorder, x, y):
    outcome, (p,), (seen,) = run(DeepAugment(share=0.5), recorder, x, y)
    changed = (seen != x).flatten(1).any(1).tolist()
    assert changed == [True] * 3 + [False] * 3
    assert outcome.loss.item() == pytest.approx(cross_entropy(p, y), rel=1e-5)


def test_a_setting_out_of_range_is_refused():
    for wrong in (
        lambda: AugMix(width=0), lambda: AugMix(severity=11), lambda: AugMix(operations=()), lambda: AugMax(steps=0),
        lambda: DeepAugment(share=1.5), lambda: DeepAugment(weakest=0.5, strongest=0.4), lambda: TRADES(weight=-1),
        lambda: DiGN(samples=0), lambda: RSE(sigma=-0.1),
    ):  # fmt: skip
        with pytest.raises(ValueError):
            wrong()


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
