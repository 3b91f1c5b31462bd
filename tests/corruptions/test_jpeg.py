"""JPEG compression on tensors is what a JPEG file does."""

import io

import numpy as np
import pytest
import torch
from PIL import Image

from dign.corruptions.jpeg import jpeg, jpeg_arithmetic

SIZES = [(32, 32), (8, 8), (9, 17), (33, 50), (16, 40), (31, 29), (13, 8)]


def picture(size: tuple[int, int], channels: int, blocky: bool) -> np.ndarray:
    rng = np.random.default_rng(sum(size))
    if not blocky:
        return rng.integers(0, 256, (*size, channels), dtype=np.uint8)
    coarse = rng.integers(0, 256, (size[0] // 4 + 1, size[1] // 4 + 1, channels), dtype=np.uint8)
    return coarse.repeat(4, axis=0).repeat(4, axis=1)[: size[0], : size[1]]


COUNT = 7


@pytest.fixture
def images() -> torch.Tensor:
    return torch.randint(0, 256, (COUNT, 3, 16, 12), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))


def test_jpeg_does_not_depend_on_how_matrices_are_multiplied(images, monkeypatch) -> None:
    """A GPU may round the factors of float32 matrices to 10 bits; whoever multiplies so would be off by levels."""
    expected = jpeg(images, 25)
    multiply = torch.Tensor.__matmul__

    def rounded(first, second):
        assert first.dtype != torch.float32, "float32 matrices are multiplied"
        return multiply(first, second)

    monkeypatch.setattr(torch.Tensor, "__matmul__", rounded)
    assert torch.equal(jpeg(images, 25), expected)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("channels", [3, 1])
@pytest.mark.parametrize("quality, blocky", [(80, True), (50, False), (25, True), (7, False)])
def test_jpeg_equals_a_file_written_and_read(size, channels: int, quality: int, blocky: bool) -> None:
    pixels = picture(size, channels, blocky)
    file = io.BytesIO()
    Image.fromarray(pixels if channels == 3 else pixels[..., 0]).save(file, "JPEG", quality=quality)
    expected = np.asarray(Image.open(file)).reshape(pixels.shape)
    made = jpeg(torch.from_numpy(pixels).permute(2, 0, 1)[None], quality)[0].permute(1, 2, 0).numpy()
    np.testing.assert_array_equal(made, expected)


@pytest.mark.parametrize("size", [(96, 96), (97, 130), (224, 224)])
@pytest.mark.parametrize("channels", [3, 1])
def test_the_codec_and_its_arithmetic_agree(size, channels: int) -> None:
    """Large images go through the codec on a CPU, all others through tensors."""
    pixels = torch.from_numpy(picture(size, channels, blocky=True)).permute(2, 0, 1)[None].contiguous()
    for quality in (85, 25, 7):
        assert torch.equal(jpeg(pixels, quality), jpeg_arithmetic(pixels, quality))
