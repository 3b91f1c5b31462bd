import pytest
import torch

from dign.methods import RSE


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_cross_entropy_under_noise_of_one_level(oracle, recorder, x, y):
    outcome, (p,), (seen,) = oracle.run(RSE(sigma=0.3), recorder, x, y)
    assert outcome.loss.item() == pytest.approx(oracle.cross_entropy(p, y), rel=1e-5)
    levels = (seen - x).flatten(1).std(1)
    assert levels.tolist() == pytest.approx([0.3] * 6, rel=0.2), "one level for all images"


def test_rse_predicts_with_the_mean_of_probabilities(oracle, recorder, x):
    recorder.eval()
    predicted = RSE(sigma=0.3, ensemble=4).predict(recorder, x, generator())
    mean = torch.tensor([oracle.probabilities(recorder, batch) for batch in recorder.seen]).mean(0)
    assert len(recorder.seen) == 4 and not torch.equal(recorder.seen[0], recorder.seen[1])
    torch.testing.assert_close(predicted, mean, atol=1e-5, rtol=0)
