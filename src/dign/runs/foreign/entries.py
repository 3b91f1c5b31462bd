"""Models that the user's own code makes."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path

from torch import nn

from dign.core.errors import UserError
from dign.models.preprocessing import Preprocessing
from dign.runs.checkpoints import load_weights
from dign.runs.foreign.model import ForeignModel


def make_from_entry(entry: str, weights: str | Path | None, given: Preprocessing) -> ForeignModel:
    """The model that a Python entry makes, with weights of a file where one is named."""
    module = import_entry(entry)
    if weights is not None:
        load_weights(Path(weights), module)
    name = Path(weights).stem if weights else entry
    return ForeignModel(module, name, given, normalizes=True)


def import_entry(entry: str) -> nn.Module:
    """The module that a Python entry makes. This imports MODULE, and so runs its code.

    Args:
        entry: "MODULE:NAME", where NAME is a function without arguments, or the module itself. MODULE is looked for
            in the working directory and among installed packages.

    Raises:
        UserError: The entry cannot be imported, or does not give an `nn.Module`.
    """
    module_name, _, name = entry.partition(":")
    if not module_name or not name:
        raise UserError(f"'{entry}' is not a Python entry: write MODULE:FUNCTION, as in my_module:make_model.")
    if module_name.endswith(".py"):
        raise UserError(f"'{module_name}' is a file: name its module, as in {Path(module_name).stem}:{name}.")
    place = os.getcwd()
    sys.path.insert(0, place)
    try:
        made = getattr(import_module(module_name), name)
        made = made if isinstance(made, nn.Module) else made()
    except (Exception, SystemExit) as error:  # the user's code may fail in any way
        raise UserError(f"{entry} cannot be used: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(place)
    if not isinstance(made, nn.Module):
        raise UserError(f"{entry} gave a {type(made).__name__}, where a torch.nn.Module is expected.")
    return made
