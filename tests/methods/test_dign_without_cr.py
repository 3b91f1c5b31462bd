import pytest

from dign.methods import DiGNWithoutCR


def test_cross_entropy_under_noise_with_a_level_for_each_image(oracle, recorder, x, y):
    outcome, (p,), (seen,) = oracle.run(DiGNWithoutCR(sigma_max=0.3), recorder, x, y)
    assert outcome.loss.item() == pytest.approx(oracle.cross_entropy(p, y), rel=1e-5)
    levels = (seen - x).flatten(1).std(1)
    assert levels.std() > 0.05
    assert levels.max() < 0.36
