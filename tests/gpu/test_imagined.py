"""On imagined GPUs no devices are mixed, nothing waits for the host but what is known to, and float64 is not needed."""

import pytest

pytestmark = pytest.mark.slow

WAITS = {
    "evaluate": "copies (8, 10) to the host",
}
"""What waits for the host, and the operation that does: evaluation counts the predictions of a batch on the CPU."""
GROUPS = ("step", "predict", "transforms", "corrupt", "metrics", "validate", "evaluate", "optimizer", "winograd")


def check_group(outcomes, group, known):
    mine = {name: outcome for name, outcome in outcomes.items() if name.split("/")[0] == group}
    assert mine
    assert {name: outcome for name, outcome in mine.items() if name not in known and outcome != "ok"} == {}


@pytest.mark.parametrize("group", GROUPS)
def test_nothing_mixes_devices_or_waits_but_what_is_known(imagined_cuda, group):
    check_group(imagined_cuda, group, set(WAITS))


def test_every_check_belongs_to_a_group(imagined_cuda):
    assert {name.split("/")[0] for name in imagined_cuda} == set(GROUPS)


@pytest.mark.parametrize(("name", "operation"), WAITS.items())
def test_what_waits_does_so_at_one_known_operation(imagined_cuda, name, operation):
    """Once it waits no more, take it off the list."""
    assert operation in imagined_cuda[name]


@pytest.mark.parametrize("group", [group for group in GROUPS if group not in ("corrupt", "evaluate")])
def test_an_apple_gpu_needs_no_float64(imagined_mps, group):
    check_group(imagined_mps, group, {"metrics/calibration"})


@pytest.mark.parametrize("name", ["corrupt/contrast", "metrics/calibration", "evaluate"])
def test_what_needs_float64_is_computed_on_the_cpu_beside_an_apple_gpu(imagined_mps, name):
    assert "to the host" in imagined_mps[name]
