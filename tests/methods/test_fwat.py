import math

import pytest
import torch

from dign.core.errors import UserError
from dign.methods import FWAT, DiGN
from dign.methods.fwat import distortion


def plain_steps(recorder, image, label, radius, steps, c):
    """The steps one by one; returns d and the signs of each."""
    delta, signs = torch.zeros_like(image), []
    for k in range(steps):
        variable = delta.clone().requires_grad_()
        loss = -recorder.body((image + variable)[None]).log_softmax(1)[0, label]
        (gradient,) = torch.autograd.grad(loss, variable)
        signs.append(gradient.sign())
        share = c / (c + k)
        delta = (1 - share) * delta + share * radius * signs[-1]
    return delta, signs


def test_the_attack_and_the_loss(oracle, recorder, x, y):
    outcome, (p,), (seen,) = oracle.run(FWAT(steps=5), recorder, x, y)
    expected = [
        image + plain_steps(recorder, image, label, 8 / 255, 5, 2.0)[0] for image, label in zip(x, y, strict=True)
    ]
    assert (seen - torch.stack(expected)).abs().gt(1e-5).float().mean() < 0.01, (
        "signs may differ where a gradient is zero"
    )
    assert outcome.loss.item() == pytest.approx(oracle.cross_entropy(p, y), rel=1e-5)
    assert outcome.measured == {}, "nothing is adapted"


def test_the_distortion_is_the_paper_s_formula(recorder, x, y):
    """sqrt(1 - 2 sum_{j<k} a_j a_k (1 - cos(s_j, s_k))), with the weights a of the signs in d."""
    recorder.body[0].weight.data.mul_(4)  # far from linear: the signs differ from step to step
    steps, c, radius = 4, 2.0, 0.5
    for image, label in zip(x, y, strict=True):
        delta, signs = plain_steps(recorder, image, label, radius, steps, c)
        shares = [c / (c + k) for k in range(steps)]
        weights = [shares[k] * math.prod(1 - later for later in shares[k + 1 :]) for k in range(steps)]
        assert sum(weights) == pytest.approx(1)
        cosines = [[torch.cosine_similarity(a.flatten(), b.flatten(), 0).item() for b in signs] for a in signs]
        pairs = [(j, k) for k in range(steps) for j in range(k)]
        formula = math.sqrt(1 - 2 * sum(weights[j] * weights[k] * (1 - cosines[j][k]) for j, k in pairs))
        assert distortion(delta[None], radius).item() == pytest.approx(formula, rel=1e-4) and formula < 0.99


def test_l2_steps_end_in_the_ball(recorder, x, y):
    method = FWAT(norm="l2", radius=0.5, steps=3)
    delta = method.views(recorder, x, y, None)[0] - x
    assert bool((delta.flatten(1).norm(dim=1) <= 0.5 + 1e-5).all()) and bool((delta.flatten(1).norm(dim=1) > 0.3).all())


def test_steps_follow_the_distortion():
    method = FWAT(steps=1, min_distortion=0.9)
    assert method.probing().steps == 2 and method.probe_images == 1000
    taken = []
    for measured in (0.5, 0.5, 0.5, 0.95, 0.95, 0.95):
        method = method.adapted({"distortion": measured})
        taken.append(method.steps)
    assert taken == [2, 3, 4, 2, 1, 1]
    assert FWAT(steps=15, min_distortion=0.9).adapted({"distortion": 0.1}).steps == 15
    assert FWAT(steps=3, min_distortion=0.9, growth=2).adapted({"distortion": 0.1}).steps == 5


def test_what_is_measured_is_the_mean_distortion(recorder, x, y):
    method = FWAT(steps=2, min_distortion=0.9)
    outcome = method(recorder, x, y)
    expected = distortion(method.views(recorder, x, y, None)[0] - x, 8 / 255).mean()
    torch.testing.assert_close(outcome.measured["distortion"], expected)
    both = DiGN() + method
    assert both.probe_images == 1000 and both.probing().parts[1].steps == 2
    assert both.adapted({"distortion": 0.0}).parts[1].steps == 3
    torch.testing.assert_close(both(recorder, x, y).measured["distortion"], expected)


def test_settings_that_do_not_go_together_are_one_sentence():
    with pytest.raises(UserError, match="min_distortion is for norm 'linf'"):
        FWAT(norm="l2", min_distortion=0.9)
