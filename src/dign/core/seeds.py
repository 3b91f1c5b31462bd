"""Randomness without saved state: a generator is a function of (run seed, purpose, step)."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import torch


def derive_seed(seed: int, purpose: str, step: int = 0) -> int:
    """Derive a 63-bit seed for one purpose at one step; different arguments give unrelated seeds."""
    digest = hashlib.blake2b(f"{seed}/{purpose}/{step}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


def make_generator(seed: int, purpose: str, step: int = 0, device: torch.device | str = "cpu") -> torch.Generator:
    """Make a generator seeded from its purpose, so that a resumed run needs no saved random state.

    >>> torch.equal(torch.rand(2, generator=make_generator(0, "a")), torch.rand(2, generator=make_generator(0, "a")))
    True
    """
    return torch.Generator(device=device).manual_seed(derive_seed(seed, purpose, step))


def host_generator(generator: torch.Generator | None) -> torch.Generator | None:
    """The generator for what the host has to know, such as the sizes of groups: no device is waited for.

    Args:
        generator: The generator of a step. On the CPU, or None, it is returned as it is.

    Returns:
        A generator on the CPU. That of a GPU's generator is seeded from its state, which the host holds; the GPU's
        generator then moves on, so that the next call gives another one.

    >>> generator = torch.Generator().manual_seed(0)
    >>> host_generator(generator) is generator
    True
    """
    if generator is None or generator.device.type == "cpu":
        return generator
    state = hashlib.blake2b(bytes(generator.get_state().tolist()), digest_size=8).digest()
    torch.rand(1, generator=generator, device=generator.device)
    return torch.Generator().manual_seed(int.from_bytes(state, "little") >> 1)


def seed_global_generators(seed: int, device: torch.device) -> None:
    """Seed torch's global generators of the CPU and of this device; torch.manual_seed would seed every GPU."""
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        torch.cuda.manual_seed(seed)
    elif device.type == "mps":
        torch.mps.manual_seed(seed)


@contextmanager
def preserve_global_generators(device: torch.device) -> Iterator[None]:
    """Restore the generators that `seed_global_generators` seeds when the block ends."""
    before = torch.mps.get_rng_state() if device.type == "mps" else None
    try:
        with torch.random.fork_rng([device] if device.type == "cuda" else []):
            yield
    finally:
        if before is not None:
            torch.mps.set_rng_state(before)
