"""ONNX files, run by onnxruntime."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from dign.core.errors import UserError, join_names, summarize_error
from dign.models.preprocessing import Preprocessing
from dign.runs.foreign.model import ForeignModel
from dign.runs.foreign.preprocessing_files import read_exported, read_preprocessing

TYPES = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(double)": np.float64}


class OnnxNetwork(nn.Module):
    """An ONNX file as a module; images go through the host's memory.

    Args:
        session: An open `onnxruntime.InferenceSession` with one input, images (N,3,H,W) or (N,H,W,3), whose first
            output is (N,C).
    """

    def __init__(self, session: Any) -> None:
        super().__init__()
        self.session = session
        (image,) = session.get_inputs()
        self.input, self.dtype, self.shape = image.name, TYPES[image.type], list(image.shape)
        self.output = session.get_outputs()[0].name
        self.channels_last = len(self.shape) == 4 and self.shape[3] == 3 and self.shape[1] != 3
        self.batch = self.shape[0] if isinstance(self.shape[0], int) else None

    @property
    def size(self) -> int | None:
        """The side of the images, where the file fixes it."""
        side = self.shape[2]
        return side if isinstance(side, int) else None

    def forward(self, images: Tensor) -> Tensor:
        pixels = images.detach().cpu().numpy().astype(self.dtype)
        pixels = np.ascontiguousarray(pixels.transpose(0, 2, 3, 1) if self.channels_last else pixels)
        parts = [self._run(part) for part in self._split(pixels)]
        return torch.from_numpy(np.concatenate(parts)[: len(images)]).to(images.device, torch.float32)

    def _run(self, pixels: np.ndarray) -> np.ndarray:
        output: np.ndarray = self.session.run([self.output], {self.input: pixels})[0]
        return output

    def _split(self, pixels: np.ndarray) -> list[np.ndarray]:
        """Batches of the size that the file fixes, the last one filled up; all at once where it fixes none."""
        if self.batch is None:
            return [pixels]
        missing = -len(pixels) % self.batch
        if missing:
            pixels = np.concatenate([pixels, np.repeat(pixels[-1:], missing, axis=0)])
        return list(np.split(pixels, len(pixels) // self.batch))


def open_onnx(path: Path, given: Preprocessing, trust: bool = False) -> ForeignModel:
    """An ONNX file. Its operators are computed by onnxruntime, which runs no code of the file's own."""
    try:
        import onnxruntime
    except ImportError as error:
        raise UserError(f"{path} needs onnxruntime ({error}): pip install 'dign[onnx]'.") from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.log_severity_level = 3
    available = onnxruntime.get_available_providers()
    providers = [name for name in ("CUDAExecutionProvider", "CPUExecutionProvider") if name in available]
    try:
        session = onnxruntime.InferenceSession(str(path), options, providers=providers)
    except Exception as error:  # onnxruntime has a class for each of its errors, all derived from Exception
        raise UserError(f"{path} is not an ONNX file that can be run: {summarize_error(error)}") from error
    _check(path, session)
    network, metadata = OnnxNetwork(session), session.get_modelmeta().custom_metadata_map
    if given.size and network.size and given.size != network.size:
        raise UserError(
            f"{path} takes images of {network.size} pixels and no others: leave out `size`, or export it for "
            f"{given.size}."
        )
    stated = Preprocessing(size=network.size).override(read_preprocessing(path.resolve().parent))
    known = stated.override(read_exported(metadata)).override(Preprocessing(size=network.size)).override(given)
    return ForeignModel(
        network,
        path.stem,
        known,
        _read_classes(metadata),
        normalizes="dign" in metadata,
        gives_probabilities=_ends_in_softmax(network, known),
    )


def _check(path: Path, session: Any) -> None:
    inputs = session.get_inputs()
    if len(inputs) != 1 or len(inputs[0].shape) != 4:
        shapes = join_names([f"{each.name} {each.shape}" for each in inputs])
        raise UserError(f"{path} must take images (N,3,H,W) as its only input, but takes {shapes}.")
    if inputs[0].type not in TYPES:
        raise UserError(
            f"{path} takes {inputs[0].type}, where {join_names(list(TYPES))} are expected: leave the "
            "conversion of pixels out of it."
        )


def _read_classes(metadata: dict[str, str]) -> list[str] | None:
    """As `dign export` writes them into a file."""
    try:
        classes = json.loads(metadata["classes"])
    except (KeyError, ValueError, RecursionError):
        return None
    return list(map(str, classes)) if isinstance(classes, list) and classes else None


def _ends_in_softmax(network: OnnxNetwork, known: Preprocessing) -> bool:
    """Whether two random images give numbers that are at least 0 and add up to 1."""
    side = known.size or 224
    images = torch.rand(2, 3, side, side, generator=torch.Generator().manual_seed(0))
    try:
        output = network(images)
    except Exception:  # what is wrong is said when the images of the data fail in the same way
        return False
    sums = output.sum(-1)
    return output.dim() == 2 and bool((output >= 0).all()) and torch.allclose(sums, torch.ones_like(sums), atol=1e-4)
