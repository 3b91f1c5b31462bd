"""Images that operations are compared with PIL on, and the comparison."""

import numpy as np
import torch
from PIL import Image

SIZES = [(32, 32), (17, 24)]


def photographs(size, count=24, seed=0):
    """Smooth images, noise, few levels, flat channels: what makes histograms differ."""
    rng = np.random.default_rng(seed)
    height, width = size
    waves = np.sin(np.arange(height)[:, None, None] / 3 + rng.random((count, 1, 1, 3)) * 6) + np.cos(
        np.arange(width)[None, :, None] / 5 + rng.random((count, 1, 1, 3)) * 6
    )
    images = 128 + 50 * waves + 10 * rng.standard_normal((count, height, width, 3))
    images[::4] = rng.random((len(images[::4]), height, width, 3)) * 256  # noise over the whole range
    images[1::4] = 100 + 40 * (images[1::4] > 128)  # two levels
    images[2, ..., 0] = 77  # a flat channel
    return torch.from_numpy(images.clip(0, 255).astype(np.uint8)).permute(0, 3, 1, 2).contiguous()


def through_pil(images, change, *parameters):
    changed = []
    for i, image in enumerate(images):
        pil = Image.fromarray(image.permute(1, 2, 0).numpy())
        changed.append(torch.from_numpy(np.array(change(pil, *(each[i] for each in parameters)))).permute(2, 0, 1))
    return torch.stack(changed)


def distance(ours, theirs):
    return (ours.int() - theirs.int()).abs()


def assert_close_but_for_the_border(ours, theirs):
    """Within one level, but where a source position falls on the image's very edge (in or out is rounding)."""
    off = distance(ours, theirs) > 1
    assert off.float().mean() < 1e-4, f"{off.float().mean():.1e} of all values differ by more than a level"
    assert (distance(ours, theirs) == 0).float().mean() > 0.998
