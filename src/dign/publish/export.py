"""A trained model as a file for other runtimes: ONNX, or a `torch.export` program, checked before it is kept."""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from dign.core.errors import UserError
from dign.core.files import replace_file
from dign.core.pixels import to_float
from dign.core.version import __version__
from dign.corruptions import corrupt
from dign.methods.base import Method
from dign.runs.classifier import Classifier, load_model
from dign.runs.ensemble import Ensemble
from dign.runs.folder import Run, load_run
from dign.runs.hub_config import hub_folder, is_hub_folder

CHECKED = ("clean", "shot_noise", "defocus_blur", "fog", "jpeg_compression")
"""Test images as they are, and under one corruption of each family at severity 3."""
TOLERANCE = 1e-3
"""Largest difference of a logit that counts as rounding, in units of the largest logit (at least 1)."""


@dataclass(frozen=True)
class Exported:
    """Where the file is, and the largest difference of its logits from PyTorch's over `images` images."""

    path: Path
    images: int
    difference: float
    single_pass: bool
    """Whether the run's method averages several passes (RSE's ensemble), and the file makes only one."""


def export_run(run: Run, out: Path | str, *, images: int = 32) -> Exported:
    """Export the model of a finished run, and keep the file only if its logits agree with PyTorch's.

    The file's input is `images`, float32 (batch,3,H,W) in [0,1], for any batch size; its output is `logits`, (batch,C).
    Normalization is part of the model, and so is its calibration: softmax of these logits is calibrated.

    Args:
        run: The finished run.
        out: The file to write: ONNX for `.onnx`, a torch.export program for `.pt2`.
        images: How many test images to compare logits on, under each of `CHECKED`, as one batch and one by one.

    Returns:
        The path, and by how much the logits differ.

    Raises:
        UserError: If `out` has another suffix, a library is missing, or the logits differ by more than `TOLERANCE`.
    """
    return export_classifier(load_model(run.path), run.data().test.take(slice(images)), out)


def export_ensemble(places: Sequence[str | Path], out: Path | str, *, images: int = 32) -> Exported:
    """Export several runs or hub folders as one graph, whose logits are the logarithm of the mean of their softmax.

    Args:
        places: Finished run folders, of which the first one's test images are compared on, or hub folders; where all
            are hub folders, random images are.
        out: As for `export_run`.
        images: As for `export_run`.

    Raises:
        UserError: As of `export_run` and of `dign.Ensemble`.
    """
    ensemble = Ensemble(places).eval()
    runs = [place for place in places if not is_hub_folder(hub_folder(place))]
    if runs:
        chosen = load_run(runs[0]).data().test.take(slice(images))
    else:
        shape, draws = (images, 3, *ensemble.image_size), torch.Generator().manual_seed(0)
        chosen = torch.randint(0, 256, shape, dtype=torch.uint8, generator=draws)
    return export_classifier(ensemble, chosen, out)


def export_classifier(classifier: Classifier, images: Tensor, out: Path | str) -> Exported:
    """Export a classifier, compared with PyTorch's logits on uint8 images (N,3,H,W); see `export_run`."""
    out = Path(out)
    writers = {".onnx": _write_onnx, ".pt2": _write_program}
    if out.suffix not in writers:
        raise UserError(f"invalid export file '{out}': expected a name in .onnx, or in .pt2 for a torch.export program")
    batches = list(_check_images(images))
    with replace_file(out) as partial, _quietly():
        logits_of = writers[out.suffix](classifier, classifier, partial)
        difference = _largest_difference(classifier, logits_of, batches)
    members = classifier.members if isinstance(classifier, Ensemble) else [classifier]
    parts = [part for member in members for part in member.method.parts]
    special = any(type(part).predict is not Method.predict for part in parts)
    return Exported(out, sum(map(len, batches)), difference, single_pass=special)


def _check_images(chosen: Tensor) -> Iterator[Tensor]:
    """Batches of test images in [0,1]."""
    for name in CHECKED:
        yield to_float(chosen if name == "clean" else corrupt(chosen, name, 3))


def _write_onnx(model: nn.Module, about: Classifier, path: Path) -> Callable[[Tensor], Tensor]:
    try:
        import onnxruntime
        import onnxscript  # noqa: F401 (torch.onnx needs it)
    except ImportError as error:
        raise UserError(f"ONNX needs libraries that cannot be imported ({error}): pip install 'dign[onnx]'") from error
    program = torch.onnx.export(
        model,
        _example(about),
        dynamo=True,
        dynamic_shapes=_free_batch(),
        input_names=["images"],
        output_names=["logits"],
        verbose=False,
    )
    assert program is not None  # it is None only without dynamo
    program.model.metadata_props.update(_metadata(about))
    program.save(str(path), external_data=False)
    session = onnxruntime.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])
    return lambda images: torch.from_numpy(session.run(["logits"], {"images": images.numpy()})[0])


def _write_program(model: nn.Module, about: Classifier, path: Path) -> Callable[[Tensor], Tensor]:
    program = torch.export.export(model, _example(about), dynamic_shapes=_free_batch())
    with open(path, "wb") as file:
        torch.export.save(program, file, extra_files=_metadata(about))
    with open(path, "rb") as file:
        return torch.export.load(file).module()


def _example(about: Classifier) -> tuple[Tensor]:
    return (torch.rand(2, 3, *about.image_size, generator=torch.Generator().manual_seed(0)),)


def _free_batch() -> tuple[dict[int, Any]]:
    return ({0: torch.export.Dim("batch", min=1)},)


def _metadata(about: Classifier) -> dict[str, str]:
    """What one needs to know to use the file, as text."""
    return {
        "classes": json.dumps(about.classes),
        "image_size": json.dumps(list(about.image_size)),
        "framing": json.dumps(asdict(about.framing)),
        "input": "RGB images in [0,1], (batch,3,H,W); normalization is inside",
        "dign": __version__,
    }


@torch.no_grad()
def _largest_difference(model: nn.Module, exported: Callable[[Tensor], Tensor], batches: list[Tensor]) -> float:
    largest = 0.0
    for images in batches:
        wanted = model(images)
        single = torch.cat([exported(image[None]) for image in images[:4]])
        found = [(exported(images), wanted), (single, wanted[:4])]
        difference = max(float((logits - like).abs().max()) for logits, like in found)
        scale = max(1.0, float(wanted.abs().max()))
        if not difference <= TOLERANCE * scale:
            raise UserError(
                f"the exported model's logits differ from PyTorch's by up to {difference:.3g}, so it was not kept: "
                "please report this with the name of the model"
            )
        largest = max(largest, difference)
    return largest


@contextmanager
def _quietly() -> Iterator[None]:
    """Without the exporter's warnings about optional libraries."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
