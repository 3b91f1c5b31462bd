import pytest
import torch

from dign.methods import Standard


def test_standard(oracle, recorder, x, y):
    outcome, (p,), (seen,) = oracle.run(Standard(), recorder, x, y)
    assert torch.equal(seen, x)
    assert outcome.loss.item() == pytest.approx(oracle.cross_entropy(p, y), rel=1e-5)
    torch.testing.assert_close(outcome.logits, recorder.body(x).detach())
