"""What dign sees of this machine: devices, precisions, compiler, memory, cache, extras, versions."""

from __future__ import annotations

import os
import platform
import shutil
from importlib.util import find_spec
from typing import Any

import torch

from dign.core.errors import UserError
from dign.core.provenance import git_commit, versions
from dign.data.cache import cache_root
from dign.models.libraries import import_library
from dign.parallel.devices import check_compiler, check_precision, device_name, list_devices
from dign.runs.config import PRECISIONS

EXTRAS = {
    "frost": "imagecorruptions",
    "heif": "pillow_heif",
    "hf": "pyarrow",
    "hub": "huggingface_hub",
    "lightning": "lightning",
    "mlflow": "mlflow",
    "onnx": "onnxruntime",
    "play": "gradio",
    "ray": "ray",
    "tensorboard": "tensorboard",
    "timm": "timm",
    "torchvision": "torchvision",
    "transformers": "transformers",
    "wandb": "wandb",
}
"""Extra to a module that it installs."""


def describe_machine() -> dict[str, Any]:
    """What dign sees of this machine, as plain values.

    >>> sorted(describe_machine())
    ['broken_extras', 'cache', 'commit', 'cores', 'devices', 'extras', 'memory_gb', 'system', 'threads', 'versions']
    """
    return {
        "versions": versions(),
        "commit": git_commit(),
        "system": platform.platform(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "memory_gb": _host_memory(),
        "devices": {name: describe_one(torch.device(name)) for name in list_devices()},
        "cache": _describe_cache(),
        "extras": {name: find_spec(module) is not None for name, module in EXTRAS.items()},
        "broken_extras": _find_broken(),
    }


def _find_broken() -> dict[str, str]:
    """The libraries of models that are installed and cannot be imported, with the reason: they must fit torch."""
    problems = {name: _problem(import_library, name, "it") for name in ("timm", "torchvision") if find_spec(name)}
    return {name: problem for name, problem in problems.items() if problem}


def describe_one(device: torch.device) -> dict[str, Any]:
    """A device: its model, its memory, the precisions it computes in, and whether torch.compile can be used."""
    compiles = _problem(check_compiler, device)
    return {
        "model": device_name(device),
        "memory_gb": _device_memory(device),
        "precisions": [name for name in PRECISIONS if _problem(check_precision, name, device) is None],
        "compiles": compiles is None,
        **({"compile_problem": compiles} if compiles else {}),
    }


def _problem(check: Any, *args: Any) -> str | None:
    try:
        check(*args)
    except UserError as error:
        return str(error)
    return None


def _device_memory(device: torch.device) -> float | None:
    if device.type == "cuda":
        return _gigabytes(torch.cuda.get_device_properties(device).total_memory)
    return _gigabytes(torch.mps.recommended_max_memory()) if device.type == "mps" else _host_memory()


def _host_memory() -> float | None:
    try:
        return _gigabytes(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):  # not on Windows
        return None


def _gigabytes(size: float) -> float:
    return round(size / 1e9, 1)


def _describe_cache() -> dict[str, Any]:
    root = cache_root()
    existing = next(folder for folder in (root, *root.parents) if folder.exists())
    return {
        "folder": str(root),
        "writable": os.access(existing, os.W_OK),
        "free_gb": _gigabytes(shutil.disk_usage(existing).free),
        "data": sorted(entry.name for entry in root.iterdir() if (entry / "info.json").is_file())
        if root.is_dir()
        else [],
    }
