"""Vector scaling recovers what was done to the logits, and changes nothing it has no evidence for."""

import pytest
import torch
from torch.nn import functional

from dign.core.errors import UserError
from dign.metrics.vector_scaling import VectorScaling, fit_vector_scaling


def draw(n, seed=0):
    generator = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(n, 3, generator=generator, dtype=torch.float64)
    return logits, torch.multinomial(logits.softmax(1), 1, generator=generator)[:, 0]


def test_undoes_a_factor_and_offsets():
    logits, labels = draw(20_000)
    distorted = 2 * logits + torch.tensor([2.0, 0.0, -1.0])
    fit = fit_vector_scaling(distorted, labels, prior=None)
    before, after = functional.cross_entropy(distorted, labels), functional.nll_loss(fit(distorted), labels)
    assert float(after) < float(before) - 0.1
    assert float(after) == pytest.approx(float(functional.cross_entropy(logits, labels)), abs=0.005)


def test_a_prior_keeps_a_handful_of_images_from_deciding():
    logits, labels = draw(8)
    fit = fit_vector_scaling(logits, labels)
    assert max(abs(value) for value in fit.offset) < 0.3 and all(0.7 < value < 1.4 for value in fit.factor)
    free = fit_vector_scaling(logits, labels, prior=None)
    assert max(abs(value) for value in free.offset) > max(abs(value) for value in fit.offset)


def test_gives_log_probabilities_and_depends_on_them_alone():
    scaling = VectorScaling((1.5, 1.0, 0.5), (0.1, 0.0, 0.2))
    logits, _ = draw(5)
    assert scaling(logits).exp().sum(1).tolist() == pytest.approx([1.0] * 5)
    assert torch.allclose(scaling(logits), scaling(logits + 3))


def test_wrong_shapes_are_refused():
    with pytest.raises(UserError, match="Vector scaling"):
        fit_vector_scaling(torch.zeros(3, 2), torch.zeros(2, dtype=torch.long))
