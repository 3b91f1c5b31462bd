"""Files that are programs: `torch.export` and TorchScript. Both can run code, and are opened only if trusted."""

from __future__ import annotations

import json
import warnings
import zipfile
from pathlib import Path
from typing import Any

import torch
from torch import nn

from dign.core.errors import UserError, summarize_error
from dign.models.preprocessing import Preprocessing
from dign.runs.foreign.model import ForeignModel
from dign.runs.foreign.preprocessing_files import read_exported, read_preprocessing


class Program(nn.Module):
    """A loaded program, whose mode cannot be switched: it was fixed when the program was written."""

    def __init__(self, program: Any) -> None:
        super().__init__()
        self.program = [program]  # not a submodule: `train` and `eval` raise an error in an exported program

    def forward(self, images: torch.Tensor) -> Any:
        return self.program[0](images)


def open_exported(path: Path, given: Preprocessing, trust: bool) -> ForeignModel:
    """A `torch.export` file. Its weights and example inputs may be pickles, and its sizes are evaluated as Python."""
    if not trust:
        raise UserError(
            f"{path} can run code when it is opened (torch.export.load unpickles parts of it): export the model as "
            "ONNX, or, if you know who made the file, set `trust`."
        )
    extra = {"classes": "", "dign": "", "image_size": "", "framing": ""}
    try:
        with warnings.catch_warnings(), open(path, "rb") as file:
            warnings.simplefilter("ignore")
            program = torch.export.load(file, extra_files=extra).module()
    except Exception as error:  # a damaged file fails in many ways
        raise UserError(f"{path} is not a torch.export file that can be loaded: {summarize_error(error)}") from error
    return _wrap(program, path, read_exported(extra).override(given), extra["classes"], normalizes=bool(extra["dign"]))


def open_torchscript(path: Path, given: Preprocessing, trust: bool) -> ForeignModel:
    """A TorchScript archive. It is a program that can write files; weights alone are not a model."""
    if not _is_torchscript(path):
        raise UserError(
            f"{path} has weights without an architecture: name that as well, as in timm:NAME or MODULE:FUNCTION with "
            f"`weights={path}`."
        )
    if not trust:
        raise UserError(
            f"{path} is a TorchScript archive, a program that can read and write files: export the model as ONNX, or, "
            "if you know who made the file, set `trust`."
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            program = torch.jit.load(path, map_location="cpu").eval()
    except Exception as error:
        raise UserError(f"{path} is not a TorchScript file that can be loaded: {summarize_error(error)}") from error
    return _wrap(program, path, given)


def _is_torchscript(path: Path) -> bool:
    """Whether a zip archive has a program in it, beside tensors."""
    try:
        with zipfile.ZipFile(path) as archive:
            return any("/code/" in name for name in archive.namelist())
    except (OSError, zipfile.BadZipFile):
        return False


def _wrap(
    program: Any, path: Path, given: Preprocessing, classes: str = "", *, normalizes: bool = False
) -> ForeignModel:
    try:
        names = json.loads(classes)
    except (ValueError, RecursionError):
        names = None
    known = read_preprocessing(path.resolve().parent).override(given)
    return ForeignModel(
        Program(program), path.stem, known, names if isinstance(names, list) else None, normalizes=normalizes
    )
