"""Histogram binning: values by hand, and a calibrated outcome where there are many images."""

import pytest
import torch

from dign.core.errors import UserError
from dign.metrics import classwise_ece, fit_temperature
from dign.metrics.histogram_binning import fit_histogram_binning
from dign.metrics.vector_scaling import fit_vector_scaling


def test_the_value_of_a_bin_is_how_often_its_class_was_right():
    """Two images at p = 0.1 (none of class 1) and two at 0.9 (one of class 1), with one more image of that p each."""
    p = torch.tensor([0.1, 0.1, 0.9, 0.9], dtype=torch.float64)
    fit = fit_histogram_binning(torch.stack([1 - p, p], 1).log(), torch.tensor([0, 0, 0, 1]), bins=2)
    assert fit.edges[1] == pytest.approx((0.5,))
    assert fit.values[1] == pytest.approx((0.1 / 3, 1.9 / 3))
    assert fit.values[0] == pytest.approx((1.1 / 3, 2.9 / 3))
    got = fit(torch.tensor([[0.1, 0.9]]).log()).exp()
    assert got.tolist()[0] == pytest.approx([1.1 / 3, 1.9 / 3])


def test_removes_a_distortion_that_no_temperature_can():
    generator = torch.Generator().manual_seed(0)
    logits = 2 * torch.randn(20_000, 3, generator=generator)
    labels = torch.multinomial((logits * torch.tensor([0.3, 1.0, 2.0])).softmax(1), 1, generator=generator)[:, 0]
    fit = fit_histogram_binning(logits[::2], labels[::2])
    before = classwise_ece(logits[1::2].softmax(1), labels[1::2])
    after = classwise_ece(fit(logits[1::2]).exp().clamp(max=1), labels[1::2])
    assert after < 0.6 * before


def test_exports_for_batches_of_any_size():
    class Binned(torch.nn.Module):
        def forward(self, scores):
            return fit(scores)

    fit = fit_histogram_binning(torch.eye(3).repeat(4, 1), torch.arange(12) % 3, bins=4)
    batch = ({0: torch.export.Dim("batch", min=1)},)
    program = torch.export.export(Binned(), (torch.rand(2, 3),), dynamic_shapes=batch).module()
    for size in (1, 5):
        scores = torch.randn(size, 3, generator=torch.Generator().manual_seed(size))
        torch.testing.assert_close(program(scores), fit(scores))


def test_more_bins_than_images_and_the_same_probability_everywhere():
    fit = fit_histogram_binning(torch.zeros(3, 2), torch.tensor([0, 0, 1]), bins=16)
    assert fit(torch.zeros(1, 2)).exp().sum().item() == pytest.approx(1)
    assert fit(torch.tensor([[9.0, -9.0]])).isfinite().all(), "bins that hold no image have a value"
    with pytest.raises(UserError, match="Histogram binning"):
        fit_histogram_binning(torch.zeros(0, 2), torch.zeros(0, dtype=torch.long))
    with pytest.raises(UserError, match="bins must be at least 1"):
        fit_histogram_binning(torch.zeros(3, 2), torch.tensor([0, 0, 1]), bins=0)


@pytest.mark.parametrize("fit", [fit_histogram_binning, fit_vector_scaling, fit_temperature])
@pytest.mark.parametrize(
    ("scores", "labels", "message"),
    [
        (torch.zeros(2, 3), torch.tensor([0, 3]), "beyond the 3 classes"),
        (torch.zeros(2, 3), torch.tensor([0, -1]), "beyond the 3 classes"),
        (torch.tensor([[0.0, float("nan")]]), torch.tensor([0]), "fitted on finite scores"),
        (torch.tensor([[0.0, float("inf")]]), torch.tensor([0]), "fitted on finite scores"),
        (torch.zeros(2, 3), torch.tensor([0.0, 1.0]), "class indices"),
        (torch.zeros(2, 3), torch.tensor(0), "class indices"),
        (torch.zeros(2, 3).tolist(), torch.tensor([0, 1]), "fitted on tensors or arrays, not list"),
    ],
)
def test_every_calibrator_refuses_what_it_cannot_be_fitted_on(fit, scores, labels, message):
    with pytest.raises(UserError, match=message):
        fit(scores, labels)
