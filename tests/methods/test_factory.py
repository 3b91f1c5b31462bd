import pytest

from dign.core.errors import UserError
from dign.methods import AT, METHODS, AugMix
from dign.methods.factory import assign_options, make_method, settings_of
from dign.runs.config import RunConfig


@pytest.mark.parametrize("names", [*METHODS, "dign+augmix", "trades+augmax"])
def test_a_method_is_made_again_from_its_settings(names):
    method = make_method(names)
    assert make_method(names, settings_of(method)) == method
    assert method.key == names


def test_settings_arrive_from_text():
    method = make_method("augmix", {"augmix": {"severity": "3", "depth": "none", "operations": "rotate,fourier"}})
    assert method == AugMix(severity=3.0, operations=("rotate", "fourier"))
    assert make_method("at", {"at": {"norm": "l2", "radius": "0.5"}}) == AT(norm="l2", radius=0.5)


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


def test_options_go_to_the_methods_that_have_them():
    assert assign_options("dign+augmix", {"sigma_max": "0.1", "augmix.weight": "6", "together": "no"}) == {
        "dign": {"sigma_max": "0.1", "together": "no"},
        "augmix": {"weight": "6", "together": "no"},
    }


@pytest.mark.parametrize(
    ("option", "message"),
    [("weight", r"weight is ambiguous.*use dign\.weight or augmix\.weight"),
     ("rse.sigma", r"rse\.sigma is given, but the method is dign\+augmix: remove it, or add rse"),
     ("sigma-mx", "Did you mean 'sigma-max'")],
)  # fmt: skip
def test_options_of_no_method_or_of_several_are_refused(option, message):
    with pytest.raises(UserError, match=message):
        assign_options("dign+augmix", {option: "1"})
