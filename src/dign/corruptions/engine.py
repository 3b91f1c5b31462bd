"""`corrupt`: any image tensor in, the same kind of tensor out."""

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from torch import Tensor

from dign.core.errors import UserError, unknown_name
from dign.core.pixels import to_float, to_uint8
from dign.corruptions import blur, digital, noise, sensors, weather
from dign.corruptions.c_bar import covers, spectra, splines, warps, waves
from dign.corruptions.sets import get_parameters
from dign.corruptions.settings import profile_for
from dign.corruptions.storage import Jpeg, choose_quality
from dign.corruptions.streams import Streams

Corruption = Callable[[Tensor, Any, Streams], Tensor]

SMALLEST_SIDE = 8
_CHUNK_VALUES = 128 * 3 * 32 * 32  # what fits in a core's cache with all intermediate results
_ONE_LAYER = ("snow", "fog", "spatter")  # which do most of their work on one channel, so that three times as much fits
_ONE_THREAD = ("frost",)  # two would take longer, waiting for each other; torch's own threads gain something

CORRUPTIONS: dict[str, Corruption] = {
    "gaussian_noise": noise.gaussian_noise,
    "shot_noise": noise.shot_noise,
    "impulse_noise": noise.impulse_noise,
    "speckle_noise": noise.speckle_noise,
    "defocus_blur": blur.defocus_blur,
    "glass_blur": blur.glass_blur,
    "motion_blur": blur.motion_blur,
    "zoom_blur": blur.zoom_blur,
    "gaussian_blur": blur.gaussian_blur,
    "snow": weather.snow,
    "frost": weather.frost,
    "fog": weather.fog,
    "brightness": weather.brightness,
    "spatter": weather.spatter,
    "contrast": digital.contrast,
    "elastic_transform": digital.elastic_transform,
    "pixelate": digital.pixelate,
    "jpeg_compression": digital.jpeg_compression,
    "saturate": digital.saturate,
    "blue_noise_sample": spectra.blue_noise_sample,
    "brownish_noise": spectra.brownish_noise,
    "caustic_refraction": warps.caustic_refraction,
    "checkerboard_cutout": covers.checkerboard_cutout,
    "circular_motion_blur": splines.circular_motion_blur,
    "cocentric_sine_waves": waves.cocentric_sine_waves,
    "inverse_sparkles": covers.inverse_sparkles,
    "lines": covers.lines,
    "perlin_noise": waves.perlin_noise,
    "pinch_and_twirl": warps.pinch_and_twirl,
    "plasma_noise": waves.plasma_noise,
    "ripple": warps.ripple,
    "single_frequency_greyscale": waves.single_frequency_greyscale,
    "sparkles": covers.sparkles,
    "transverse_chromatic_abberation": splines.transverse_chromatic_abberation,
    "iso_noise": sensors.iso_noise,
    "low_light": sensors.low_light,
    "color_quant": sensors.color_quant,
    "camera_noise": sensors.camera_noise,
}


def corrupt(
    images: Tensor,
    name: str,
    severity: int,
    *,
    profile: str | None = None,
    seed: int = 0,
    first: int = 0,
    jpeg: Jpeg = None,
) -> Tensor:
    """Corrupt images as the published benchmarks do.

    The published definition works on 8-bit images and truncates its result to 8 bits. Float images are therefore
    rounded to multiples of 1/255 first, and come back as such: both types give a model the same input.

    Args:
        images: uint8, uint16 or float in [0,1]; (N,3,H,W), (N,1,H,W), (3,H,W) or (1,H,W); sides of at least 8 pixels.
        name: One of `dign.corruptions.ALL_NAMES`.
        severity: 1 to 5, or 0 for the clean images.
        profile: "cifar", "tiny-imagenet" or "imagenet", the image size that the parameters were published for, or
            "32-64" or "64-224" for sizes between two; by default by the size of the images (`profile_for`), with which
            lengths in pixels go.
        seed: Of the random numbers.
        first: Number of the first image in its data set. The random numbers of an image depend on (seed, name,
            severity, number) alone: batches of any size give the same images.
        jpeg: Afterwards, JPEG of this quality and back. Published benchmarks of 64 and 224 pixels are stored so:
            "profile" does what that of the profile does (`dign.corruptions.STORED_QUALITY`). None: no such step.

    Returns:
        A new tensor of the type, shape and device of `images`. Images on an Apple GPU are corrupted on the CPU.

    Raises:
        UserError: An unknown name or profile, an invalid severity, or images that cannot be corrupted.

    >>> clean = torch.full((2, 3, 32, 32), 128, dtype=torch.uint8)
    >>> noisy = corrupt(clean, "gaussian_noise", 3)
    >>> bool((corrupt(clean[1:], "gaussian_noise", 3, first=1) == noisy[1:]).all())
    True
    """
    _check_images(images)
    if name not in CORRUPTIONS:
        raise unknown_name("corruption", name, CORRUPTIONS)
    if images.dtype == torch.uint16:
        eight = ((images.to(torch.int32) + 128) // 257).to(torch.uint8)
        made = corrupt(eight, name, severity, profile=profile, jpeg=jpeg, seed=seed, first=first)
        return (made.to(torch.int32) * 257).to(torch.uint16) if severity else images.clone()
    batch = images if images.dim() == 4 else images[None]
    height, width = batch.shape[-2:]
    profile = profile or profile_for(height, width)
    if batch.device.type == "mps":  # has no float64, which decides levels here and there
        made = corrupt(images.cpu(), name, severity, profile=profile, jpeg=jpeg, seed=seed, first=first)
        return made.to(images.device)
    clean = severity == 0 and not isinstance(severity, bool | float)
    setting = get_parameters(name, 1 if clean else severity, profile, math.sqrt(height * width))
    quality = choose_quality(jpeg, profile)
    if clean:
        return images.clone()
    result = torch.empty_like(batch, memory_format=torch.contiguous_format)

    def work(start: int, part: Tensor) -> None:
        made = _corrupt_chunk(part, CORRUPTIONS[name], setting, f"{name}/{severity}", seed, first + start, quality)
        result[start : start + len(part)] = made

    chunks = _chunks(batch, _CHUNK_VALUES * (3 if name in _ONE_LAYER else 1))
    threads = torch.get_num_threads() if images.device.type == "cpu" and name not in _ONE_THREAD else 1
    _share_out(work, chunks, max(1, min(threads, len(chunks))))
    return result.view(images.shape)


def _share_out(work: Callable[[int, Tensor], None], chunks: list[tuple[int, Tensor]], threads: int) -> None:
    """Work on the chunks in so many threads, this one among them, while torch's own have nothing to do.

    Those would share out one small tensor at a time; after each they wait in a loop, which takes a core from others.
    """

    def work_on(own: list[tuple[int, Tensor]]) -> None:
        if threads > 1:
            torch.set_num_threads(1)
        for start, chunk in own:
            work(start, chunk)

    available = torch.get_num_threads()
    try:
        with ThreadPoolExecutor(max(1, threads - 1)) as pool:  # which starts a thread when there is something to do
            others = [pool.submit(work_on, chunks[place::threads]) for place in range(1, threads)]
            work_on(chunks[::threads])
            for other in others:
                other.result()
    finally:
        torch.set_num_threads(available)  # threads that begin later take over what a thread has set last


def _chunks(batch: Tensor, values: int) -> list[tuple[int, Tensor]]:
    size = max(1, values // batch[:1].numel()) if len(batch) else 1
    return [(start, batch[start : start + size]) for start in range(0, len(batch), size)]


def _corrupt_chunk(
    images: Tensor, corruption: Corruption, setting: Any, purpose: str, seed: int, first: int, quality: int | None
) -> Tensor:
    indices = torch.arange(first, first + len(images), device=images.device)
    with torch.autocast(images.device.type, enabled=False):  # which a training step may have enabled
        bytes_in = images if images.dtype == torch.uint8 else to_uint8(images)
        streams = Streams(seed, f"corruption/{purpose}", indices)
        bytes_out = corruption(bytes_in, setting, streams)
        bytes_out = digital.jpeg_compression(bytes_out, quality, streams) if quality else bytes_out
    assert bytes_out.dtype == torch.uint8 and bytes_out.shape == images.shape
    return bytes_out if images.dtype == torch.uint8 else to_float(bytes_out, images.dtype)


def _check_images(images: Tensor) -> None:
    if not isinstance(images, Tensor) or not (
        images.dtype in (torch.uint8, torch.uint16) or images.is_floating_point()
    ):
        kind = images.dtype if isinstance(images, Tensor) else type(images).__name__
        raise UserError(f"Images to corrupt must be a tensor of uint8, uint16 or of floats in [0,1], not {kind}.")
    if images.dim() not in (3, 4) or images.shape[-3] not in (1, 3):
        raise UserError(
            f"Images to corrupt must be (N,3,H,W), (N,1,H,W), (3,H,W) or (1,H,W), not {tuple(images.shape)}."
        )
    if min(images.shape[-2:]) < SMALLEST_SIDE:
        raise UserError(f"Images to corrupt need sides of at least {SMALLEST_SIDE}, not {tuple(images.shape[-2:])}.")
    if images.is_floating_point() and images.numel():
        low, high = (float(value) for value in torch.aminmax(images.detach()))
        if not (low >= 0 and high <= 1):  # also true of NaN
            raise UserError(f"Float images must be in [0,1], but these range from {low:g} to {high:g}.")
