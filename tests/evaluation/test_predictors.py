"""Models in any form, and what is refused."""

from functools import partial

import pytest
import torch
from torch import nn

from dign.core.errors import UserError
from dign.evaluation.predictors import check_logits, device_of, gives_logits, in_precision, make_predictor
from dign.methods import RSE

X = torch.rand(2, 3, 4, 4)


def generator():
    return torch.Generator().manual_seed(0)


class Net(nn.Module):
    def forward(self, images):
        return images.mean((2, 3))


class NetWithClasses(Net):
    """Its `predict` gives classes, as that of many libraries does."""

    def predict(self, images, threshold=0.5):
        return self(images).argmax(1)


class NetWithMethod(Net):
    def predict(self, images, generator=None):
        return torch.full((len(images), 3), float(torch.rand((), generator=generator)))


def test_a_module_predicts_by_the_softmax_of_its_logits():
    for net in (Net(), NetWithClasses()):
        assert gives_logits(net)
        assert torch.equal(make_predictor(net)(X, generator()), torch.softmax(X.mean((2, 3)), 1))


def test_a_module_that_takes_a_generator_to_predict_gets_it():
    net = NetWithMethod()
    assert not gives_logits(net)
    assert make_predictor(net)(X, generator())[0, 0] == torch.rand((), generator=generator())


def test_a_second_parameter_gets_the_generator_if_it_is_one():
    draws = {
        "alone": lambda x: 0.0,
        "required": lambda x, g: torch.rand((), generator=g),
        "named": lambda x, generator=None: torch.rand((), generator=generator),
        "other": lambda x, scale=1.0: scale,
    }
    expected = torch.rand((), generator=generator()).item()
    found = {name: float(make_predictor(function)(X, generator())) for name, function in draws.items()}
    assert found == pytest.approx({"alone": 0.0, "required": expected, "named": expected, "other": 1.0})
    rse = make_predictor(partial(RSE(sigma=0.1).predict, Net()))
    assert torch.equal(rse(X, generator()), rse(X, generator()))


def test_the_device_is_that_of_parameters_or_buffers():
    assert device_of(nn.Linear(2, 2, device="meta")).type == "meta"
    assert device_of(nn.Flatten()).type == device_of(lambda x: x).type == "cpu"
    assert device_of(nn.BatchNorm2d(2, affine=False, device="meta")).type == "meta"


@pytest.mark.parametrize(
    ("net", "message"),
    [
        (nn.Sequential(Net(), nn.Softmax(1)), "gives probabilities, where logits are expected: leave out its softmax"),
        (nn.Flatten(), "knows 48 classes, but x has 3: name data with the model's classes"),
        (nn.Linear(3, 3), r"fails on images of shape \(2, 3, 4, 4\)"),
        (nn.Identity(), "must give logits"),
    ],
)
def test_what_does_not_give_logits_is_named(net, message):
    net.train()
    with pytest.raises(UserError, match=message):
        check_logits("it", net, (3, 4, 4), 3, "x")
    assert net.training


def test_logits_that_are_not_finite_are_refused():
    net = nn.Sequential(nn.Flatten(), nn.Linear(48, 3))
    nn.init.constant_(net[1].bias, float("nan"))
    with pytest.raises(UserError, match="not finite"):
        check_logits("it", net, (3, 4, 4))


def test_a_softmax_over_float16_is_still_seen():
    class Half(nn.Module):
        def forward(self, images):
            return torch.softmax(images.mean((2, 3)), 1).half()

    with pytest.raises(UserError, match="softmax"):
        check_logits("it", Half(), (3, 4, 4))


def test_a_network_computes_in_the_precision_that_is_asked_for():
    """Its probabilities are float32 in either case; images and generator arrive as they are."""
    net, seen = nn.Conv2d(3, 4, 3), []

    def predict(images, generator):
        logits = net(images).mean((2, 3))
        seen.append((logits.dtype, images.dtype, generator))
        return torch.softmax(logits.float(), 1)

    drawn, cpu = generator(), torch.device("cpu")
    exact, mixed = (in_precision(predict, predict, name, cpu)(X, drawn) for name in ("32", "bf16"))
    assert seen == [(torch.float32, torch.float32, drawn), (torch.bfloat16, torch.float32, drawn)]
    assert exact.dtype == mixed.dtype == torch.float32
    assert torch.allclose(exact, mixed, atol=0.02) and not torch.equal(exact, mixed)


def test_a_precision_that_there_is_not_or_that_a_device_lacks_is_told():
    def same(images, generator):
        return images

    with pytest.raises(UserError, match="Unknown precision 'auto'"):
        in_precision(same, same, "auto", torch.device("cpu"))
    with pytest.raises(UserError, match="cannot compute in `precision=bf16`"):
        in_precision(same, same, "bf16", torch.device("meta"))
