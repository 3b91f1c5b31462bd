import pytest
import torch

from dign.augment.recombination import recombine_paired, recombine_single
from dign.core.errors import UserError
from dign.methods import APR, DiGN


def test_cross_entropy_of_single_and_paired_images(oracle, recorder, x, y):
    outcome, (single, paired), seen = oracle.run(APR(weight=0.5), recorder, x, y)
    draw = torch.Generator().manual_seed(0)
    expected = recombine_single(x, 0.5, 3.0, draw)
    torch.testing.assert_close(seen[0], expected)
    torch.testing.assert_close(seen[1], recombine_paired(expected, 0.6, draw))
    loss = oracle.cross_entropy(single, y) + 0.5 * oracle.cross_entropy(paired, y)
    assert outcome.loss.item() == pytest.approx(loss, rel=1e-5)


def test_a_weight_of_zero_needs_no_second_pass(recorder, x, y):
    method = APR(weight=0.0)
    assert method.cost.forward == 1
    method(recorder, x, y)
    assert [len(batch) for batch in recorder.seen] == [6]


def test_dign_adds_its_noise_to_the_single_images(recorder, x, y):
    method = DiGN(samples=2) + APR()
    assert method.cost.forward == 4
    outcome = method(recorder, x, y, generator=torch.Generator().manual_seed(0))
    single, first, second, _ = recorder.seen[0].split(6)
    assert torch.equal(single, recombine_single(x, 0.5, 3.0, torch.Generator().manual_seed(0)))
    for noisy in (first, second):
        assert 0 < (noisy - single).abs().mean() < 0.2
    assert len(outcome.terms) == 3


@pytest.mark.parametrize("settings", [{"single": 1.5}, {"paired": -1.0}, {"severity": 11.0}, {"weight": -1.0}])
def test_settings_out_of_range(settings):
    with pytest.raises(UserError, match=f"{next(iter(settings))} must be"):
        APR(**settings)
