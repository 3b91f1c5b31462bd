import pytest
import torch

from dign.methods import TRADES


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_trades(oracle, recorder, x, y):
    outcome, (p, q), (clean, seen) = oracle.run(TRADES(weight=3.0), recorder, x, y)
    radius = 8 / 255
    target = recorder.body(x).detach().softmax(1)

    def objective(logits, i):
        return (target[i] * (target[i].log() - logits.log_softmax(0))).sum()

    start = (1e-3 * torch.randn(x.shape, generator=generator())).clamp(-radius, radius)
    start = (x + start).clamp(0, 1) - x
    expected = oracle.plain_attack(recorder, x, objective, radius, 7, 2.5 * radius / 7, start)
    assert torch.equal(clean, x)
    assert (seen - expected).abs().gt(1e-5).float().mean() < 0.01, "signs may differ where a gradient is about zero"
    assert outcome.loss.item() == pytest.approx(oracle.cross_entropy(p, y) + 3 * oracle.kl(p, q), rel=1e-4)
    assert outcome.terms["adversarial_consistency"] > 0
