"""What APR-SP and HybridAugment++ share."""

import pytest
import torch

from dign.core.errors import UserError
from dign.methods import APR, DiGN, HybridAugment

pytestmark = pytest.mark.parametrize("kind", [APR, HybridAugment])


def test_cross_entropy_of_single_and_paired_images(oracle, recorder, x, y, kind):
    outcome, (single, paired), _ = oracle.run(kind(weight=0.5), recorder, x, y)
    loss = oracle.cross_entropy(single, y) + 0.5 * oracle.cross_entropy(paired, y)
    assert outcome.loss.item() == pytest.approx(loss, rel=1e-5)


def test_a_weight_of_zero_needs_no_second_pass(recorder, x, y, kind):
    method = kind(weight=0.0)
    assert method.cost.forward == 1
    method(recorder, x, y)
    assert [len(batch) for batch in recorder.seen] == [6]


def test_dign_adds_its_noise_to_the_single_images(recorder, x, y, kind):
    method = DiGN(samples=2) + kind()
    assert method.cost.forward == 4
    outcome = method(recorder, x, y, generator=torch.Generator().manual_seed(0))
    single, first, second, _ = recorder.seen[0].split(6)
    assert torch.equal(single, kind().combine_single(x, torch.Generator().manual_seed(0)))
    for noisy in (first, second):
        assert 0 < (noisy - single).abs().mean() < 0.2
    assert len(outcome.terms) == 3


@pytest.mark.parametrize("settings", [{"single": 1.5}, {"paired": -1.0}, {"severity": 11.0}, {"weight": -1.0}])
def test_settings_out_of_range(settings, kind):
    with pytest.raises(UserError, match=f"{next(iter(settings))} must be"):
        kind(**settings)
