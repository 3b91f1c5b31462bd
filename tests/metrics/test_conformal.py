"""Sets hold the true class as often as promised, for any model; scores by hand."""

import math

import numpy as np
import pytest
import torch

from dign.core.errors import UserError
from dign.metrics.conformal import SETS, conformal_quantile, conformal_scores, prediction_sets


def draw(generator, n, classes=6):
    """A model that is wrong about its probabilities: labels are drawn from flatter ones."""
    logits = torch.from_numpy(2.5 * generator.normal(size=(n, classes)))
    labels = torch.distributions.Categorical(logits=logits / 2).sample()
    return logits.softmax(1), labels


@pytest.mark.parametrize("kind", SETS)
@pytest.mark.parametrize("coverage", [0.8, 0.95])
def test_coverage_is_kept_and_not_exceeded_by_much(kind, coverage):
    torch.manual_seed(0)
    generator = np.random.default_rng(0)
    kept = []
    for _ in range(30):
        probabilities, labels = draw(generator, 500)
        rows = torch.arange(500)
        held = conformal_scores(probabilities, kind)[rows, labels]
        new, truth = draw(generator, 1000)
        sets = prediction_sets(new, conformal_quantile(held, coverage), kind)
        kept.append(float(sets[torch.arange(1000), truth].double().mean()))
    assert np.mean(kept) >= coverage - 0.012
    if kind == "threshold":  # the other has sets of one class where less would do
        assert np.mean(kept) <= coverage + 0.012


def test_scores_and_sets_by_hand():
    p = torch.tensor([[0.6, 0.3, 0.1], [0.2, 0.3, 0.5]], dtype=torch.float64)
    assert conformal_scores(p, "threshold").numpy() == pytest.approx(np.array([[0.4, 0.7, 0.9], [0.8, 0.7, 0.5]]))
    assert conformal_scores(p, "adaptive").numpy() == pytest.approx(np.array([[0.0, 0.6, 0.9], [0.8, 0.5, 0.0]]))
    assert prediction_sets(p, 0.75, "threshold").tolist() == [[True, True, False], [False, True, True]]
    assert prediction_sets(p, 0.75, "adaptive").tolist() == [[True, True, False], [False, True, True]]
    assert prediction_sets(p, 0.1, "threshold").sum(1).tolist() == [1, 1], "never empty"
    assert prediction_sets(p, math.inf, "adaptive").all()


def test_the_quantile_needs_enough_images():
    scores = torch.arange(1.0, 20.0)
    assert conformal_quantile(scores, 0.95) == 19 and conformal_quantile(scores, 0.96) == math.inf
    with pytest.raises(UserError, match="none"):
        conformal_quantile(scores[:0], 0.9)
    with pytest.raises(UserError, match="coverage"):
        conformal_quantile(scores, 1.0)
    with pytest.raises(UserError, match="kind of prediction sets"):
        conformal_scores(torch.ones(1, 1), "raps")
