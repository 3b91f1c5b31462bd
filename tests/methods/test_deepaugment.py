import pytest

from dign.methods import DeepAugment


def test_deepaugment(oracle, recorder, x, y):
    outcome, (p,), (seen,) = oracle.run(DeepAugment(share=0.5), recorder, x, y)
    changed = (seen != x).flatten(1).any(1).tolist()
    assert changed == [True] * 3 + [False] * 3
    assert outcome.loss.item() == pytest.approx(oracle.cross_entropy(p, y), rel=1e-5)
