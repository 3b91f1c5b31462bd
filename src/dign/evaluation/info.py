"""What results say about the model and about how it was measured."""

from __future__ import annotations

import time

import torch
from torch import nn

from dign.core.provenance import git_commit, now, versions
from dign.corruptions import frost_source, profile_for
from dign.corruptions.benchmark.read import Benchmark
from dign.evaluation.conditions import Conditions
from dign.evaluation.predictors import Model
from dign.evaluation.result_info import EvaluationInfo, RunInfo
from dign.metrics import Calibration
from dign.models import count_parameters
from dign.parallel.devices import device_name
from dign.runs.classifier import Classifier

EXTERNAL = "external"
"""What results give as the method of a model that dign did not train."""


def describe_model(model: Model, name: str | None = None) -> RunInfo:
    """The `run` entry of results for any model; `name` is its name in tables."""
    network = model.model if isinstance(model, Classifier) else model
    kind = getattr(network, "__name__", type(network).__name__)
    parameters = count_parameters(network) if isinstance(network, nn.Module) else None
    if isinstance(model, Classifier):
        return RunInfo(name or model.name, model.method.key, model.method.title, kind, "custom", 0, parameters)
    return RunInfo(name or kind, EXTERNAL, name or kind, kind, "custom", 0, parameters)


def describe_evaluation(
    split: str | None,
    clean: Calibration,
    image_size: tuple[int, int],
    conditions: Conditions | Benchmark,
    device: torch.device,
    started: float,
    precision: str = "32",
) -> EvaluationInfo:
    """The `evaluation` entry of results; `started` is a time of `time.monotonic`."""
    if isinstance(conditions, Benchmark):
        profile, frost, benchmark = conditions.profile, conditions.frost, conditions.folder.resolve().name
        quality = conditions.jpeg_quality
    else:
        quality = conditions.quality_for(*image_size)
        profile, benchmark = conditions.profile or profile_for(*image_size), None
        frost = frost_source() if "frost" in conditions.corruptions else None
    return EvaluationInfo(
        split=split,
        images=clean.count,
        image_size=image_size,
        profile=profile,
        seed=conditions.seed,
        benchmark=benchmark,
        frost=frost,
        jpeg_quality=quality,
        bins=clean.bins,
        device=device_name(device),
        precision=precision,
        commit=git_commit(),
        time=now(),
        seconds=round(time.monotonic() - started, 2),
        versions=versions(),
    )


def count_predictions(conditions: Conditions | Benchmark, images: int | None) -> int | None:
    """How many predictions an evaluation makes; None where the number of images is not known."""
    if images is None:
        return None
    if isinstance(conditions, Benchmark):
        return images + sum(map(len, conditions))
    return images * (1 + len(conditions.pairs))
