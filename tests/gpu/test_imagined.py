"""On an imagined GPU no devices are mixed, and nothing waits for the host but what is known to."""

import pytest

pytestmark = pytest.mark.slow

WAITS = {
    "step/augmix": "bincount",
    "step/augmax": "bincount",
    "step/deepaugment": "_local_scalar_dense",
    "corrupt/spatter": "equal",
}
"""What waits for the host, and the operation that does: the sizes of AugMix's groups, the shapes of Noise2Net."""
NOT_IMAGINABLE = {"corrupt/zoom_blur"}
"""A sparse matrix, which fake tensors do not imitate."""


def test_nothing_mixes_devices_or_waits_but_what_is_known(imagined_cuda):
    expected = {*WAITS, *NOT_IMAGINABLE}
    others = {name: outcome for name, outcome in imagined_cuda.items() if name not in expected and outcome != "ok"}
    assert others == {}
    assert len(imagined_cuda) > 35, "methods, predictions, transforms, corruptions, metrics, optimizers"


@pytest.mark.parametrize(("name", "operation"), WAITS.items())
def test_what_waits_does_so_at_one_known_operation(imagined_cuda, name, operation):
    """Once it waits no more, take it off the list."""
    assert operation in imagined_cuda[name]
