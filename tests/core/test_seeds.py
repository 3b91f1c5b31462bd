"""Seeds depend on every argument, and global generators are restored."""

import torch

from dign.core.seeds import (
    derive_seed,
    host_generator,
    make_generator,
    preserve_global_generators,
    seed_global_generators,
)


def test_seeds_differ_with_every_argument_and_fit_a_generator():
    seeds = {derive_seed(seed, purpose, step) for seed in range(5) for purpose in "ab" for step in range(5)}
    assert len(seeds) == 50 and all(0 <= seed < 2**63 for seed in seeds)
    assert derive_seed(0, "method", 3) == 8280609033816142773, "a change would change every trained model"


def test_a_generator_is_a_function_of_its_purpose():
    draws = [torch.rand(3, generator=make_generator(1, purpose)).tolist() for purpose in ("a", "a", "b")]
    assert draws[0] == draws[1] != draws[2]


def test_global_generators_are_restored():
    cpu = torch.device("cpu")
    before = torch.get_rng_state()
    with preserve_global_generators(cpu):
        seed_global_generators(3, cpu)
        first = torch.rand(1)
    assert torch.equal(torch.get_rng_state(), before)
    with preserve_global_generators(cpu):
        seed_global_generators(3, cpu)
        assert torch.equal(torch.rand(1), first)


def test_the_host_draws_from_a_cpu_generator_itself_and_from_a_copy_of_any_other(monkeypatch):
    generator = make_generator(0, "method")
    assert host_generator(generator) is generator and host_generator(None) is None
    drawn = []
    monkeypatch.setattr(torch, "rand", lambda *size, **options: drawn.append(options["device"]))
    device = DeviceGenerator(7)
    first, again = (host_generator(device).initial_seed() for _ in range(2))
    assert first == again and drawn == ["gpu", "gpu"], "the same state gives the same numbers, and the device moves on"
    assert host_generator(DeviceGenerator(8)).initial_seed() != first


class DeviceGenerator:
    """As that of a GPU, whose state the host knows."""

    class _Device(str):
        type = "gpu"

    device = _Device("gpu")

    def __init__(self, state):
        self.state = state

    def get_state(self):
        return torch.tensor([self.state] * 16, dtype=torch.uint8)
