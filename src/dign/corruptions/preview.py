"""A labeled sheet of what corruptions do to one picture."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap

import numpy as np
import torch
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

from dign.corruptions.engine import corrupt
from dign.corruptions.sets import family_of
from dign.corruptions.settings import NAMES, SEVERITIES
from dign.corruptions.storage import Jpeg

LARGEST_SIDE = 224  # larger pictures are shrunk to this, the largest size that parameters were published for
SMALLEST_SIDE = 8  # that corruptions take
_CELL = 160
_GAP = 8
_HEADING = 44
_MARGIN = 190
_LETTERS = 20  # of a label that fit into the margin
_PAPER, _INK, _FAINT = (255, 255, 255), (30, 30, 30), (120, 120, 120)


def shrink(picture: np.ndarray) -> np.ndarray:
    """Shrink uint8 (3,H,W) to sides of at most `LARGEST_SIDE`, none made smaller than `SMALLEST_SIDE`."""
    image = Image.fromarray(np.ascontiguousarray(picture.transpose(1, 2, 0)))
    scale = min(1.0, LARGEST_SIDE / max(image.size))
    width, height = (max(round(side * scale), min(side, SMALLEST_SIDE)) for side in image.size)
    image = image.resize((width, height), Image.Resampling.LANCZOS)
    return np.ascontiguousarray(np.asarray(image).transpose(2, 0, 1))


def preview_sheet(
    picture: Tensor,
    names: Sequence[str] = NAMES,
    severities: Sequence[int] = SEVERITIES,
    *,
    profile: str | None = None,
    seed: int = 0,
    jpeg: Jpeg = "profile",
) -> Image.Image:
    """Draw one row per corruption, by family: the clean picture (3,H,W) uint8, then the severities."""
    scale = _CELL / max(picture.shape[-2:])
    cell_height = round(picture.shape[-2] * scale)
    families: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        families.setdefault(family_of(name), []).append(name)
    levels = (0, *severities)
    width = _MARGIN + len(levels) * (_CELL + _GAP)
    height = _HEADING + len(set(names)) * (cell_height + _GAP) + len(families) * _HEADING
    sheet = Image.new("RGB", (width, height), _PAPER)
    draw = ImageDraw.Draw(sheet)
    for column, text in enumerate(("clean", *(f"severity {severity}" for severity in severities))):
        draw.text((_left(column) + _CELL // 2, _HEADING // 2), text, _INK, _font(16), anchor="mm")
    top = _HEADING
    for family, members in families.items():
        draw.text((_GAP, top + _HEADING // 2), family.upper(), _FAINT, _font(14), anchor="lm")
        top += _HEADING
        for name in members:
            label = "\n".join(wrap(name.replace("_", " "), _LETTERS))
            draw.multiline_text((_GAP, top + cell_height // 2), label, _INK, _font(17), anchor="lm")
            for column, severity in enumerate(levels):
                made = corrupt(picture, name, severity, profile=profile, seed=seed, jpeg=jpeg)
                sheet.paste(_resize(made, scale), (_left(column), top))
            top += cell_height + _GAP
    return sheet


def _left(column: int) -> int:
    return _MARGIN + column * (_CELL + _GAP)


def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)


def _resize(picture: Tensor, scale: float) -> Image.Image:
    """Resize a picture for its cell; the pixels of small ones stay visible."""
    image = Image.fromarray(picture.permute(1, 2, 0).contiguous().to("cpu", torch.uint8).numpy())
    size = (round(image.width * scale), round(image.height * scale))
    return image.resize(size, Image.Resampling.NEAREST if scale > 1 else Image.Resampling.LANCZOS)
