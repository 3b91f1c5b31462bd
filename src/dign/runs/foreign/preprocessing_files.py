"""What a model expects of images, as it is written down: in `preprocessor_config.json`, or by `dign export`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dign.core.errors import UserError
from dign.core.files import parse_json, read_json
from dign.models.preprocessing import Preprocessing

FILE = "preprocessor_config.json"
RESAMPLING = {2: "bilinear", 3: "bicubic"}
"""Pillow's numbers, which these files use."""


def read_preprocessing(folder: Path) -> Preprocessing:
    """What the file in a folder says; empty where there is none.

    Raises:
        UserError: The file cannot be read, or asks for something that is not done here.
    """
    path = folder / FILE
    if not path.is_file():
        return Preprocessing()
    try:
        config = read_json(path)
        if not isinstance(config, dict):
            raise ValueError("it is not an object")
        return _read(config)
    except (OSError, ValueError, TypeError, KeyError, ArithmeticError) as error:
        raise UserError(f"{path} cannot be used: {str(error).rstrip('.')}.") from error


def read_exported(metadata: Mapping[str, str]) -> Preprocessing:
    """What `dign export` wrote into a file: the size of its images, and how pictures are cut to it; empty for others.

    Raises:
        UserError: A value is out of range.
    """
    if not metadata.get("dign"):
        return Preprocessing()
    try:
        size, framing = (parse_json(metadata.get(key) or "{}") for key in ("image_size", "framing"))
        known = {key: framing.get(key) for key in ("fit", "crop_fraction", "interpolation")}
        return Preprocessing(size=size[0] if size and len(set(size)) == 1 else None, **known)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise UserError(f"what `dign export` wrote into the file cannot be used: {str(error).rstrip('.')}.") from error


def _read(config: dict[str, Any]) -> Preprocessing:
    mean, std = (_numbers(config.get(key)) for key in ("image_mean", "image_std"))
    normalizes = config.get("do_normalize", mean is not None)
    mean, std = (mean, std) if normalizes else ((0.0,) * 3, (1.0,) * 3)
    if config.get("do_rescale", True):
        factor = 255 * float(config.get("rescale_factor", 1 / 255))
        offset = 1.0 if config.get("rescale_offset") or config.get("offset") else 0.0
        mean, std = _rescale(mean, std, factor, offset)
    size, fit, fraction = _read_size(config)
    return Preprocessing(size, mean, std, fit, fraction, RESAMPLING.get(config.get("resample", 2)))


def _numbers(value: Any) -> tuple[float, ...] | None:
    if value is None:
        return None
    numbers = tuple(map(float, value if isinstance(value, list) else [value] * 3))
    if len(numbers) != 3:
        raise ValueError(f"{len(numbers)} channels, where 3 are expected")
    return numbers


def _rescale(
    mean: tuple[float, ...] | None, std: tuple[float, ...] | None, factor: float, offset: float
) -> tuple[tuple[float, ...] | None, tuple[float, ...] | None]:
    """Mean and std for images in [0,1], where the file has them for `factor` times these, less `offset`."""
    if abs(factor - 1) < 1e-6 and not offset:
        return mean, std
    mean, std = mean or (0.0,) * 3, std or (1.0,) * 3
    return tuple((each + offset) / factor for each in mean), tuple(each / factor for each in std)


def _read_size(config: dict[str, Any]) -> tuple[int | None, str | None, float | None]:
    """Size, fit and crop fraction: a shorter side and a crop, or both sides at once."""
    size, crop = _side(config.get("size")), _side(config.get("crop_size"))
    if config.get("do_center_crop") and crop:
        shorter = size if config.get("do_resize", True) and size else crop
        return crop, "crop", round(min(1.0, crop / shorter), 4)
    if config.get("crop_pct") and size:
        return size, "crop", float(config["crop_pct"])
    if not size:
        return None, None, None
    keeps_ratio = isinstance(config["size"], dict) and "shortest_edge" in config["size"]
    return size, "crop" if keeps_ratio else "squash", 1.0 if keeps_ratio else None


def _side(value: Any) -> int | None:
    if isinstance(value, dict):
        if "height" in value and value["height"] != value.get("width"):
            raise ValueError(f"images of {value['height']} x {value.get('width')} pixels, where squares are expected")
        value = value.get("shortest_edge", value.get("height"))
    return None if value is None else int(value)
