import pytest
import torch

from dign.methods import AT


def test_at(oracle, recorder, x, y):
    outcome, (p,), (seen,) = oracle.run(AT(), recorder, x, y)
    radius = 8 / 255
    objective = lambda logits, i: -logits.log_softmax(0)[y[i]]  # noqa: E731
    expected = oracle.plain_attack(recorder, x, objective, radius, 7, 2.5 * radius / 7, torch.zeros_like(x))
    torch.testing.assert_close(seen, expected, atol=1e-5, rtol=0)
    assert outcome.loss.item() == pytest.approx(oracle.cross_entropy(p, y), rel=1e-5)
    clean = oracle.cross_entropy(oracle.probabilities(recorder, x), y)
    assert outcome.loss.item() > clean
