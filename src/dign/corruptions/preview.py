"""A labelled sheet of what the nineteen corruptions do to one picture."""

from __future__ import annotations

import numpy as np
import torch
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

from dign.corruptions import FAMILIES, SEVERITIES, corrupt

LARGEST_SIDE = 224  # larger pictures are shrunk to this, the largest size that parameters were published for
_CELL = 160
_GAP = 8
_HEADING = 44
_MARGIN = 190
_PAPER, _INK, _FAINT = (255, 255, 255), (30, 30, 30), (120, 120, 120)


def shrink(picture: np.ndarray) -> np.ndarray:
    """uint8 (3,H,W) with sides of at most `LARGEST_SIDE`, proportions kept."""
    image = Image.fromarray(np.ascontiguousarray(picture.transpose(1, 2, 0)))
    image.thumbnail((LARGEST_SIDE, LARGEST_SIDE), Image.Resampling.LANCZOS)
    return np.ascontiguousarray(np.asarray(image).transpose(2, 0, 1))


def preview_sheet(picture: Tensor, *, profile: str | None = None, seed: int = 0) -> Image.Image:
    """One row per corruption, under its family: the clean picture (3,H,W) uint8, then severities 1 to 5."""
    scale = _CELL / max(picture.shape[-2:])
    cell_height = round(picture.shape[-2] * scale)
    columns, rows = 1 + len(SEVERITIES), sum(map(len, FAMILIES.values()))
    width = _MARGIN + columns * (_CELL + _GAP)
    height = _HEADING + rows * (cell_height + _GAP) + len(FAMILIES) * _HEADING
    sheet = Image.new("RGB", (width, height), _PAPER)
    draw = ImageDraw.Draw(sheet)
    for column, text in enumerate(("clean", *(f"severity {severity}" for severity in SEVERITIES))):
        draw.text((_left(column) + _CELL // 2, _HEADING // 2), text, _INK, _font(16), anchor="mm")
    top = _HEADING
    for family, names in FAMILIES.items():
        draw.text((_GAP, top + _HEADING // 2), family.upper(), _FAINT, _font(14), anchor="lm")
        top += _HEADING
        for name in names:
            draw.text((_GAP, top + cell_height // 2), name.replace("_", " "), _INK, _font(17), anchor="lm")
            for column in range(columns):
                made = corrupt(picture, name, column, profile=profile, seed=seed)
                sheet.paste(_enlarged(made, scale), (_left(column), top))
            top += cell_height + _GAP
    return sheet


def _left(column: int) -> int:
    return _MARGIN + column * (_CELL + _GAP)


def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)


def _enlarged(picture: Tensor, scale: float) -> Image.Image:
    """Small pictures keep their pixels visible."""
    image = Image.fromarray(picture.permute(1, 2, 0).contiguous().to("cpu", torch.uint8).numpy())
    size = (round(image.width * scale), round(image.height * scale))
    return image.resize(size, Image.Resampling.NEAREST if scale > 1 else Image.Resampling.LANCZOS)
