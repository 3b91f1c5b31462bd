import pytest
import torch

from dign.core.errors import UserError
from dign.methods import AT, METHODS, RSE, AugMix, DiGN, DiGNWithoutCR, Standard
from dign.methods.factory import make_method, settings_of
from dign.runs.config import RunConfig


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_the_hybrid_is_dign_plus_augmix_s_divergence_with_one_clean_pass(recorder, x, y):
    dign, augmix = DiGN(weight=0.7, samples=2), AugMix(weight=5.0)
    outcome = (dign + augmix)(recorder, x, y, generator=generator())
    clean, *views = recorder.seen[0].split(6)
    assert len(recorder.seen) == 1 and len(views) == 2 + 2 and torch.equal(clean, x)
    assert not any(torch.equal(view, x) for view in views)
    logits = [recorder.body(batch) for batch in (clean, *views)]
    first = dign.terms(logits[0], logits[1:3], y)
    second = augmix.terms(logits[0], logits[3:], y)
    expected = first["cross_entropy"] + first["consistency"] + second["augmix_consistency"]
    assert outcome.loss.item() == pytest.approx(expected.item(), rel=1e-5)
    assert sum(outcome.terms.values()).item() == pytest.approx(outcome.loss.item(), rel=1e-5)


def test_a_sum_of_two_that_never_see_the_clean_batch_keeps_both_terms(recorder, x, y):
    outcome = (RSE() + DiGNWithoutCR() + AT())(recorder, x, y, generator=generator())
    assert len(outcome.terms) == 3
    assert len(recorder.trained_on[0]) == 3 * 6
    assert (RSE() + DiGNWithoutCR()).predict(recorder, x, generator()).shape == (6, 5)


def test_every_pair_of_methods_adds_up(recorder, x, y):
    for first in METHODS.values():
        for second in METHODS.values():
            if first is not second:
                outcome = (first() + second())(recorder, x, y, generator=generator())
                assert sum(outcome.terms.values()).item() == pytest.approx(outcome.loss.item(), rel=1e-5)


def test_a_sum_takes_each_method_once_and_wants_them_to_agree():
    with pytest.raises(UserError, match="once"):
        DiGN() + DiGN()
    with pytest.raises(UserError, match="label_smoothing"):
        DiGN(label_smoothing=0.1) + AugMix()


@pytest.mark.parametrize("names", [*METHODS, "dign+augmix", "trades+augmax"])
def test_a_method_is_made_again_from_its_settings(names):
    method = make_method(names)
    assert make_method(names, settings_of(method)) == method
    assert method.key == names


def test_settings_arrive_from_text():
    method = make_method("augmix", {"augmix": {"severity": "3", "depth": "none", "operations": "rotate,fourier"}})
    assert method == AugMix(severity=3.0, operations=("rotate", "fourier"))
    assert make_method("at", {"at": {"norm": "l2", "radius": "0.5"}}) == AT(norm="l2", radius=0.5)


def test_standard_plus_dign_is_dign(recorder, x, y):
    both = (Standard() + DiGN())(recorder, x, y, generator=generator())
    alone = DiGN()(recorder, x, y, generator=generator())
    torch.testing.assert_close(both.loss, alone.loss)


@pytest.mark.parametrize("names", ["dign+augmix", "augmix+dign"])
def test_what_the_parts_share_is_said_once(names):
    method = make_method(names, {"dign": {"together": "false", "label_smoothing": 0.1}})
    assert [(part.together, part.label_smoothing) for part in method.parts] == [(False, 0.1)] * 2
    with pytest.raises(UserError, match="must agree in 'together'"):
        make_method(names, {"dign": {"together": False}, "augmix": {"together": True}})


def test_a_preset_for_dign_serves_its_sums():
    config = RunConfig.from_mapping({"data": "cifar10", "preset": "fast", "method": "dign+augmix"})
    method = make_method(config.method, config.settings)
    assert not method.together and method.parts[0].samples == 1
