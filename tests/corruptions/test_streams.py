import pytest
import torch

from dign.corruptions.streams import Streams


def streams(count: int = 64, *, seed: int = 0, purpose: str = "test", first: int = 0) -> Streams:
    return Streams(seed, purpose, torch.arange(first, first + count))


def test_a_stream_belongs_to_its_image_not_to_the_batch() -> None:
    together = streams(10).bits(100)
    assert torch.equal(streams(4, first=6).bits(100), together[6:])


def test_successive_draws_are_one_stream() -> None:
    parts = streams()
    assert torch.equal(torch.cat([parts.bits(30), parts.bits(70)], dim=1), streams().bits(100))


def test_seed_purpose_and_image_give_unrelated_numbers() -> None:
    base = streams().bits(1000)
    others = (streams(seed=1).bits(1000), streams(purpose="tests").bits(1000), streams(first=64).bits(1000))
    for other in others:
        flipped = (base ^ other).view(torch.uint8).to(torch.int64)
        share = sum(((flipped >> bit) & 1).double().mean() for bit in range(8)) / 8
        assert abs(float(share) - 0.5) < 5 * 0.5 / (base.numel() * 32) ** 0.5


@pytest.mark.slow
def test_every_bit_is_fair_and_no_two_are_related() -> None:
    words = streams(100).bits(10_000).flatten()
    bits = torch.stack([(words >> bit) & 1 for bit in range(32)]).double()
    margin = 5 / len(words) ** 0.5
    assert float((bits.mean(1) - 0.5).abs().max()) < margin
    signs = 2 * bits - 1
    off_diagonal = (signs @ signs.T / len(words)).fill_diagonal_(0)
    assert float(off_diagonal.abs().max()) < margin
    assert float((signs[:, 1:] * signs[:, :-1]).mean(1).abs().max()) < margin  # one number and the next


def test_neighboring_images_are_uncorrelated() -> None:
    uniform = streams(2000).uniform(500).double() - 0.5
    along_images = (uniform[1:] * uniform[:-1]).mean() * 12
    assert abs(float(along_images)) < 5 / uniform.numel() ** 0.5


def test_uniforms_and_normals_have_their_distributions() -> None:
    uniform = streams(100).uniform(10_000).double().flatten()
    counts = torch.histc(uniform, 100, 0, 1)
    chi_square = float(((counts - 10_000) ** 2 / 10_000).sum())
    assert 40 < chi_square < 180  # 99 degrees of freedom
    assert float(uniform.min()) > 0 and float(uniform.max()) < 1
    normal = streams(100).normal(10_001).double().flatten()
    assert abs(float(normal.mean())) < 5e-3 and abs(float(normal.var()) - 1) < 7e-3
    assert abs(float((normal**4).mean()) - 3) < 0.04
    assert torch.equal(normal * 4096, (normal * 4096).round())
