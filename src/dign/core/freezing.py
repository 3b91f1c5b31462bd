"""Use a model without changing it."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
"""Torch's own. Others are left alone, unless they have `like_torch = True`: these may compute something else."""


@contextmanager
def freeze_temporarily(model: nn.Module, *, keep_mode: bool = False) -> Iterator[nn.Module]:
    """Put every submodule into eval mode and stop gradients of all parameters, until the block ends.

    In eval mode batch norm does not mix the images of a batch, so the gradient of a sum over images is each image's
    own gradient. Without gradients of parameters a backward pass is about half the work and never writes `.grad`. The
    mode of each submodule (a backbone kept in eval mode stays there) and the `requires_grad` of each parameter are
    restored, also after an exception. A model shared with other processes does not wait for them. With `keep_mode` the
    parameters alone are frozen.
    """
    if torch.compiler.is_compiling():  # which takes gradients of inputs alone, and cannot stop those of parameters
        before = [(module, module.training) for module in model.modules()]
        if not keep_mode:
            model.eval()
        yield model
        for module, training in before:
            module.training = training
        return
    modes = [(module, module.training) for module in model.modules()]
    trainable = [parameter for parameter in model.parameters() if parameter.requires_grad]
    shared = [module for module, _ in modes if isinstance(module, DistributedDataParallel)]
    try:
        if not keep_mode:
            model.eval()
        for parameter in trainable:
            parameter.requires_grad_(False)
        with ExitStack() as unshared:
            for replica in shared:
                unshared.enter_context(replica.no_sync())
            yield model
    finally:
        for module, training in modes:
            module.training = training
        for parameter in trainable:
            parameter.requires_grad_(True)


def _is_plain_batch_norm(module: nn.Module) -> bool:
    return type(module) in BATCH_NORMS or getattr(module, "like_torch", False) is True


@contextmanager
def still_temporarily(model: nn.Module) -> Iterator[nn.Module]:
    """Let the model compute as in training, but without anything random and without a record, until the block ends.

    Batch norms that are being trained take the statistics of each batch, and do not add them to their running ones;
    everything else is in eval mode. For losses that compare several passes and are trained through: with the running
    statistics, which lag behind the weights, a network would learn to satisfy them in eval mode alone.
    """
    modes = [(module, module.training) for module in model.modules()]
    norms: list[Any] = [module for module, training in modes if training and _is_plain_batch_norm(module)]
    tracked = [norm.track_running_stats for norm in norms]
    model.eval()
    for norm in norms:
        norm.training, norm.track_running_stats = True, False
    try:
        yield model
    finally:
        for module, training in modes:
            module.training = training
        for norm, track in zip(norms, tracked, strict=True):
            norm.track_running_stats = track
