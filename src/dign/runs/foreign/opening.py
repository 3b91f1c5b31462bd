"""`dign.open_model`: a model in whatever form it is stored."""

from __future__ import annotations

from pathlib import Path

from dign.core.errors import UserError
from dign.models import MODELS
from dign.models.libraries import PREFIXES
from dign.models.preprocessing import Preprocessing
from dign.runs.foreign.architectures import open_architecture
from dign.runs.foreign.entries import make_from_entry
from dign.runs.foreign.huggingface import is_huggingface_folder, open_huggingface
from dign.runs.foreign.model import ForeignModel
from dign.runs.foreign.onnx_files import open_onnx
from dign.runs.foreign.programs import open_exported, open_torchscript
from dign.runs.hub_config import HUB_PREFIX
from dign.runs.torch_files import TORCH_FILES

KINDS = (
    "an ONNX file (.onnx), a torch.export file (.pt2), a Hugging Face folder, timm:NAME, torchvision:NAME or one of "
    "dign's architectures with weights, or MODULE:FUNCTION"
)


def open_model(
    where: str | Path,
    *,
    weights: str | Path | None = None,
    preprocessing: Preprocessing | None = None,
    trust: bool = False,
) -> ForeignModel:
    """Open a model that dign did not train, as a module from images in [0,1] to logits.

    Args:
        where: An ONNX file (`.onnx`), a `torch.export` file (`.pt2`), a folder in the layout of Hugging Face's
            transformers or of timm, `timm:NAME`, `torchvision:NAME` or one of dign's architectures with `weights`, or
            `MODULE:FUNCTION`, which imports MODULE and so runs its code.
        weights: For an architecture or an entry: a safetensors or `.pth` file. For an architecture of a library without
            it: the weights that the library fetches.
        preprocessing: What the model expects of images, where the files do not say it, or in place of what they say.
        trust: Whether files that can run code when they are opened are opened (`.pt2`, TorchScript).

    Returns:
        The model, in eval mode, with `preprocessing` (what is known), `classes` (None where unknown) and `name`.

    Raises:
        UserError: There is no such model, it cannot be opened safely, or a library is missing.

    Example:
        >>> model = open_model("photos.onnx")  # doctest: +SKIP
        >>> dign.evaluate(model, loader)  # doctest: +SKIP
    """
    where, given = str(where), preprocessing or Preprocessing()
    path = Path(where)
    if where.startswith(PREFIXES) or where in MODELS:
        return open_architecture(where, weights, given).eval()
    if is_entry(where):
        return make_from_entry(where, weights, given).eval()
    if weights is not None:
        raise UserError(f"{where} has weights of its own: leave out `weights`.")
    if path.is_dir():
        if not is_huggingface_folder(path):
            raise UserError(f"{where} is not a folder with a model: expected {KINDS}.")
        return open_huggingface(path, given).eval()
    if not path.is_file():
        raise UserError(f"There is no file {where}.")
    if path.suffix.lower() in TORCH_FILES:
        return open_torchscript(path, given, trust).eval()
    return OPENERS[path.suffix.lower()](path, given, trust).eval()


def is_entry(where: str) -> bool:
    """Whether a model is made by the user's own code, `MODULE:FUNCTION`, and not read from a file or a library."""
    path = Path(where)
    if where.startswith((*PREFIXES, HUB_PREFIX)) or where in MODELS or path.is_dir():
        return False
    return path.suffix.lower() not in (*OPENERS, *TORCH_FILES)


OPENERS = {".onnx": open_onnx, ".pt2": open_exported}
