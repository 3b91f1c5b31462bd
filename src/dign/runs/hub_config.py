"""The configuration of a hub folder, read without torch and without trusting it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from dign.core.checks import find_invalid_facts
from dign.core.errors import UserError
from dign.core.files import read_json

HUB_PREFIX = "hub:"
CONFIG, WEIGHTS, CARD = "config.json", "model.safetensors", "README.md"


def hub_folder(where: str | Path) -> Path:
    """`hub:DIR`, or DIR itself, as a path."""
    return Path(str(where).removeprefix(HUB_PREFIX))


def is_hub_folder(folder: Path) -> bool:
    return (folder / CONFIG).is_file() and not (folder / "config.toml").is_file()


def read_hub_config(folder: Path) -> dict[str, Any]:
    """What `dign hub save` wrote: model, classes, image_size, mean, std, data, method and its settings, and framing."""
    try:
        config = read_json(folder / CONFIG)
    except (OSError, ValueError) as error:
        raise UserError(
            f"{folder} is not a hub folder: its {CONFIG} cannot be read ({error}). `dign hub save` makes one."
        ) from error
    if not isinstance(config, dict) or not _sound(config):
        raise UserError(
            f"{folder / CONFIG} was not written by dign: it lacks model, classes, image_size, mean, std, data, method "
            "or settings, or one of them is not what it should be."
        )
    from dign.data.framing import Framing

    try:
        framing = asdict(Framing(**config.get("framing", {})))
    except (UserError, TypeError) as error:
        raise UserError(f"{folder / CONFIG} has a framing that dign does not know: {error}") from error
    known = {key: config[key] for key in _KINDS}
    return {**known, "framing": framing, "seen": _read_seen(folder, config.get("seen"))}


def _read_seen(folder: Path, seen: Any) -> dict[str, Any] | None:
    """How many images of its data the model was trained on, and which share was held out; None where it is not said."""
    if seen is None:
        return None
    kinds = {"images": int, "validation": float, "validation_seed": int}
    if not isinstance(seen, dict) or not all(type(seen.get(key)) in (kind, int) for key, kind in kinds.items()):
        raise UserError(f"{folder / CONFIG} has an entry `seen` that dign does not know.")
    return {key: kind(seen[key]) for key, kind in kinds.items()}


_KINDS = {
    "model": str, "classes": list, "image_size": list, "mean": list, "std": list,
    "data": str, "method": str, "settings": dict,
}  # fmt: skip


def _sound(config: dict[str, Any]) -> bool:
    if not all(isinstance(config.get(key), kind) for key, kind in _KINDS.items()):
        return False
    if config["model"].startswith(HUB_PREFIX) or not all(
        isinstance(table, dict) for table in config["settings"].values()
    ):
        return False
    return not find_invalid_facts(config)
