"""What holds for all corruptions, and how the nineteen compare with the published ones."""

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from dign.core.errors import UserError
from dign.corruptions import ALL_NAMES, NAMES, PROFILES, SETS, SEVERITIES, corrupt, frost_source
from dign.corruptions.blur import blur_along_lines
from dign.corruptions.frost import _resize, frost_pictures
from dign.corruptions.settings import get_parameters

CERTAIN = (
    "gaussian_blur",
    "defocus_blur",
    "zoom_blur",
    "contrast",
    "brightness",
    "saturate",
    "jpeg_compression",
    "pixelate",
)

RANDOM = tuple(name for name in (*NAMES, *SETS["c-bar"]) if name not in (*CERTAIN, "circular_motion_blur"))

DRAWS = 60

needs_photographs = pytest.mark.skipif(frost_source() != "photographs", reason="needs imagecorruptions' photographs")


def statistics(clean: Tensor, corrupted: Tensor) -> Tensor:
    """Mean, deviation, share of changed values, channel correlations and radial spectrum of the change.

    clean (n,3,32,32), corrupted (...,n,3,32,32) -> (...,12)
    """
    change = corrupted.double() - clean.double()
    over = (-4, -3, -2, -1)
    rows = change.movedim(-3, -4).flatten(-3)
    rows = rows - rows.mean(-1, keepdim=True)
    covariance = rows @ rows.mT
    scale = covariance.diagonal(dim1=-2, dim2=-1).sqrt()
    correlation = covariance / (scale[..., None] * scale[..., None, :]).clamp(min=1e-9)
    power = torch.fft.fft2(change).abs().square().mean(dim=(-4, -3))
    frequency = torch.hypot(torch.fft.fftfreq(32)[:, None], torch.fft.fftfreq(32))
    edges = (0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.71)
    bands = [
        power[..., (frequency >= low) & (frequency < high)].mean(-1).log() for low, high in itertools.pairwise(edges)
    ]
    pairs = [correlation[..., 0, 1], correlation[..., 0, 2], correlation[..., 1, 2]]
    return torch.stack([change.mean(over), change.std(over), (change != 0).double().mean(over), *pairs, *bands], dim=-1)


def images_of(size: tuple[int, int], count: int = 5, channels: int = 3, seed: int = 0) -> torch.Tensor:
    """Smooth pictures with some noise: random pixels alone would hide mistakes of blurs."""
    generator = torch.Generator().manual_seed(seed)
    coarse = torch.rand((count, channels, 4, 5), generator=generator)
    smooth = torch.nn.functional.interpolate(coarse, size=size, mode="bilinear")
    noisy = smooth * 220 + torch.rand((count, channels, *size), generator=generator) * 35
    return noisy.to(torch.uint8)


@pytest.mark.parametrize("name", ALL_NAMES)
@pytest.mark.parametrize("size, channels", [((32, 32), 3), ((17, 23), 3), ((8, 8), 1), ((64, 40), 1)])
def test_the_batch_does_not_matter(name: str, size: tuple[int, int], channels: int) -> None:
    """Any cut of the data set into batches, and any number of threads, gives the same bytes."""
    images = images_of(size, 7, channels)
    before = images.clone()
    together = corrupt(images, name, 5, seed=3, first=100)
    assert torch.equal(images, before), "the argument was changed"
    assert together.dtype == torch.uint8 and together.shape == images.shape
    unchanged = (name == "saturate" and channels == 1) or (name == "pinch_and_twirl" and size == (8, 8))
    assert unchanged or not torch.equal(together, images)
    singly = torch.cat([corrupt(images[i : i + 1], name, 5, seed=3, first=100 + i) for i in range(7)])
    assert torch.equal(singly, together)
    assert torch.equal(corrupt(images[3:], name, 5, seed=3, first=103), together[3:])
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1 if threads > 1 else 2)
        assert torch.equal(corrupt(images, name, 5, seed=3, first=100), together)
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize("name", ALL_NAMES)
def test_large_batches_are_the_same_as_small_ones(name: str) -> None:
    images = images_of((32, 32), 300)
    large = corrupt(images, name, 3)
    assert torch.equal(corrupt(images[130:171], name, 3, first=130), large[130:171])


@pytest.mark.parametrize("name", ALL_NAMES)
def test_floats_give_what_bytes_give(name: str) -> None:
    images = images_of((32, 32), 2)
    made = corrupt(images.float() / 255, name, 4)
    assert made.dtype == torch.float32
    assert torch.equal(made, corrupt(images, name, 4).float() / 255)
    half = corrupt(images[0].double() / 255, name, 4)
    assert half.dtype == torch.float64 and half.shape == (3, 32, 32)


@pytest.mark.parametrize("name", ALL_NAMES)
def test_one_image_is_a_batch_of_one(name: str) -> None:
    image = images_of((24, 24), 1)[0]
    assert torch.equal(corrupt(image, name, 2), corrupt(image[None], name, 2)[0])
    strided = images_of((24, 48), 1)[0, :, :, ::2]
    assert torch.equal(corrupt(strided, name, 2), corrupt(strided.contiguous(), name, 2))


@pytest.mark.parametrize("name", ALL_NAMES)
@pytest.mark.parametrize("profile", PROFILES)
def test_every_setting_works_at_the_smallest_size(name: str, profile: str) -> None:
    images = images_of((8, 11), 2)
    for severity in SEVERITIES:
        assert corrupt(images, name, severity, profile=profile).shape == images.shape


@pytest.mark.parametrize("name", [name for name in ALL_NAMES if name != "elastic_transform"])
def test_severities_get_worse(name: str) -> None:
    """But for elastic_transform, whose published severities trade one kind of distortion for another."""
    images = images_of((64, 64), 8)
    change = [(corrupt(images, name, s).float() - images.float()).abs().mean() for s in SEVERITIES]
    assert change[4] > change[0] > 0


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("contrast", "brightness")])
def test_grayscale_is_close_to_the_same_picture_in_color(name: str) -> None:
    if name in ("gaussian_noise", "shot_noise", "impulse_noise", "speckle_noise", "saturate"):
        pytest.skip("each channel has its own noise, or none has color to saturate")
    gray = images_of((32, 32), 6, channels=1)
    in_color = corrupt(gray.expand(-1, 3, -1, -1).contiguous(), name, 3).float()
    weights = torch.tensor([0.299, 0.587, 0.114]).view(1, 3, 1, 1)
    difference = (corrupt(gray, name, 3).float() - (in_color * weights).sum(1, keepdim=True)).abs()
    assert float(difference.mean()) < 1.2


def test_severity_zero_is_a_clean_copy() -> None:
    images = images_of((10, 10))
    made = corrupt(images, "fog", 0)
    assert torch.equal(made, images) and made.data_ptr() != images.data_ptr()


def test_seeds_and_positions_give_other_numbers() -> None:
    image = images_of((32, 32), 1)
    for name in ALL_NAMES:
        base = corrupt(image, name, 3)
        random = not torch.equal(base, corrupt(image, name, 3, seed=1))
        assert random == (not torch.equal(base, corrupt(image, name, 3, first=1)))


def test_no_images_are_no_error() -> None:
    assert corrupt(torch.zeros((0, 3, 32, 32)), "snow", 2).shape == (0, 3, 32, 32)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(ALL_NAMES),
    st.sampled_from(SEVERITIES),
    st.sampled_from(list(PROFILES)),
    st.tuples(st.integers(8, 40), st.integers(8, 40)),
    st.sampled_from([1, 3]),
    st.integers(0, 255),
)
def test_uniform_images_of_any_size_and_value_are_fine(name, severity, profile, size, channels, value) -> None:
    image = torch.full((2, channels, *size), value, dtype=torch.uint8)
    made = corrupt(image, name, severity, profile=profile)
    assert made.shape == image.shape and made.dtype == torch.uint8
    if name in ("gaussian_blur", "defocus_blur", "zoom_blur", "glass_blur", "motion_blur", "contrast", "pixelate"):
        assert int((made.int() - value).abs().max()) <= 2


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(ALL_NAMES),
    st.sampled_from(SEVERITIES),
    st.tuples(st.integers(8, 40), st.integers(8, 40)),
    st.sampled_from([1, 3]),
    st.integers(0, 2**31),
    st.booleans(),
)
def test_shape_type_and_range_are_kept_for_any_images(name, severity, size, channels, seed, float32) -> None:
    """Noise, flat patches and the extremes of the range, as uint8 or as float in [0,1]."""
    random = torch.Generator().manual_seed(seed)
    image = torch.rand((3, channels, *size), generator=random)
    image[1] = (image[1] > 0.5).float()
    image[2, :, : size[0] // 2] = 1.0
    image = image if float32 else (image * 255).to(torch.uint8)
    before = image.clone()
    made = corrupt(image, name, severity, seed=seed)
    assert made.shape == image.shape and made.dtype == image.dtype and torch.equal(image, before)
    assert float(made.min()) >= 0 and float(made.max()) <= (1 if float32 else 255)  # which NaN is not


@pytest.mark.parametrize(
    "images, name, severity, options, message",
    [
        (torch.zeros(1, 3, 32, 32), "fogg", 1, {}, "Did you mean 'fog'"),
        (torch.zeros(1, 3, 32, 32), "fog", 6, {}, "invalid severity 6: expected a whole number from 0 .clean. to 5"),
        (torch.zeros(1, 3, 32, 32), "fog", -1, {}, "invalid severity -1"),
        (torch.zeros(1, 3, 32, 32), "fog", True, {}, "invalid severity True"),
        (torch.zeros(1, 3, 32, 32), "fog", False, {}, "invalid severity False"),
        (torch.zeros(1, 3, 32, 32), "fog", None, {}, "invalid severity None"),
        (torch.zeros(1, 3, 32, 32), "fog", "", {}, "invalid severity ''"),
        (torch.zeros(1, 3, 32, 32), "fog", 1.0, {}, "invalid severity 1.0"),
        (torch.zeros(1, 3, 32, 32), "fog", 2.5, {}, "invalid severity 2.5"),
        (torch.zeros(1, 3, 32, 32), "fog", 1, {"profile": "cifar100"}, "Did you mean 'cifar'"),
        (torch.zeros(1, 2, 32, 32), "fog", 1, {}, r"not \(1, 2, 32, 32\)"),
        (torch.zeros(32, 32), "fog", 1, {}, r"not \(32, 32\)"),
        (torch.zeros(1, 3, 7, 32), "fog", 1, {}, "at least 8"),
        (torch.full((1, 3, 8, 8), 200.0), "fog", 1, {}, "from 200 to 200"),
        (torch.full((1, 3, 8, 8), -0.1), "fog", 1, {}, "from -0.1"),
        (torch.full((1, 3, 8, 8), float("nan")), "fog", 1, {}, "nan"),
        (torch.zeros((1, 3, 8, 8), dtype=torch.int64), "fog", 1, {}, "int64"),
        ([[1.0]], "fog", 1, {}, "list"),
    ],
)
def test_invalid_input_is_a_user_error(images, name, severity, options, message: str) -> None:
    with pytest.raises(UserError, match=message):
        corrupt(images, name, severity, **options)


@pytest.mark.parametrize("name", ALL_NAMES)
def test_autocast_around_it_changes_nothing(name: str) -> None:
    """As where images are corrupted inside a training step with mixed precision."""
    images = images_of((32, 32))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = corrupt(images, name, 3)
    assert torch.equal(inside, corrupt(images, name, 3))


class _NoDivisionByNumbers(TorchDispatchMode):
    """Refuses a tensor divided by a number of Python's whose inverse is rounded, which CUDA multiplies by instead."""

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        if (
            str(function).startswith("aten.div")
            and isinstance(arguments[1], int | float)
            and arguments[0].is_floating_point()
        ):
            mantissa, _ = math.frexp(arguments[1])
            assert mantissa == 0.5, f"{function} by {arguments[1]}"
        return function(*arguments, **(keywords or {}))


@pytest.mark.parametrize("name", ALL_NAMES)
@pytest.mark.parametrize("channels", [1, 3])
def test_no_division_comes_out_otherwise_on_a_gpu(name: str, channels: int) -> None:
    images = images_of((33, 31), channels=channels)
    corrupt(images, name, 3)  # what is computed once and kept is made on the CPU
    with _NoDivisionByNumbers():
        corrupt(images, name, 3)


@pytest.mark.parametrize("name", CERTAIN)
@pytest.mark.parametrize("severity", SEVERITIES)
def test_corruptions_without_chance_equal_the_published_ones(reference, name: str, severity: int) -> None:
    expected = reference[name][severity - 1]
    made = corrupt(reference["clean"][: len(expected)], name, severity, profile="cifar")
    off = (made.int() - expected.int()).abs()
    assert int(off.max()) <= 1
    assert float((off == 0).float().mean()) > 0.98  # the rest: a float64 rounding error right at a whole number


@pytest.mark.parametrize("severity", SEVERITIES)
def test_some_angle_gives_each_published_motion_blur(reference, severity: int) -> None:
    angles = torch.arange(-45, 45.01, 0.25, dtype=torch.float64)
    for clean, expected in zip(reference["clean"][:4], reference["motion_blur"][severity - 1], strict=False):
        copies = clean.expand(len(angles), -1, -1, -1).contiguous()
        made = blur_along_lines(copies, *get_parameters("motion_blur", severity, "cifar"), angles)
        within = ((made.int() - expected.int()).abs() <= 1).float().mean(dim=(1, 2, 3))
        assert float(within.max()) > 0.99


@needs_photographs
def test_some_piece_of_a_photograph_gives_each_published_frost(reference) -> None:
    kept, added, scale = get_parameters("frost", 3, "cifar")
    for clean, expected in zip(reference["clean"][:2], reference["frost"][2], strict=False):
        best = 0.0
        for photograph in frost_pictures("photographs"):
            pieces = _resize(photograph, scale, 32, 32).double().unfold(1, 32, 1).unfold(2, 32, 1)[..., ::5, ::5]
            pieces = pieces.permute(1, 2, 0, 3, 4).flatten(0, 1)
            made = (clean[:, ::5, ::5] * kept + pieces * added).clamp(0, 255).floor()
            within = ((made - expected[:, ::5, ::5]).abs() <= 1).float().mean(dim=(1, 2, 3))
            best = max(best, float(within.max()))
        assert best > 0.99


@pytest.mark.slow
@pytest.mark.parametrize("name", [pytest.param(n, marks=needs_photographs if n == "frost" else ()) for n in RANDOM])
def test_random_corruptions_have_the_published_statistics(reference, name: str) -> None:
    """The reference is one draw; ours are many. In units of the spread of draws, its statistics must be a draw's."""
    clean = reference["clean"][: reference[name].shape[1]]
    scores = []
    for severity in SEVERITIES:
        copies = clean.repeat(DRAWS, 1, 1, 1)
        ours = statistics(clean, corrupt(copies, name, severity, profile="cifar").unflatten(0, (DRAWS, -1)))
        theirs = statistics(clean, reference[name][severity - 1])
        spread = ours.std(dim=0)
        same = (theirs - ours.mean(dim=0)).abs() < 1e-9
        scores.append(torch.where(same, 0.0, (theirs - ours.mean(dim=0)) / spread.clamp(min=1e-9)))
    scores = torch.stack(scores)
    assert float(scores.abs().max()) < 5, scores
    assert float(scores.square().mean()) < 2.5, scores  # 1 if nothing but chance is at work


@pytest.mark.parametrize("name", ["fog", "gaussian_noise", "jpeg_compression"])
def test_sixteen_bits_give_what_eight_give(name: str) -> None:
    images = images_of((32, 32), 2)
    wide = (images.int() * 257).to(torch.uint16)
    made = corrupt(wide, name, 4)
    assert made.dtype == torch.uint16
    assert torch.equal(made.int(), corrupt(images, name, 4).int() * 257)
    uneven = (wide.int() + 100).clamp(max=65535).to(torch.uint16)
    assert torch.equal(corrupt(uneven, name, 0).int(), uneven.int())
    assert torch.equal(corrupt(uneven, name, 4).int(), made.int())  # less than half a level
