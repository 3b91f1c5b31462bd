"""Use a model without changing it."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel


@contextmanager
def freeze_temporarily(model: nn.Module) -> Iterator[nn.Module]:
    """Put every submodule into eval mode and stop gradients of all parameters, until the block ends.

    In eval mode batch norm does not mix the images of a batch, so the gradient of a sum over images is each image's
    own gradient. Without gradients of parameters a backward pass is about half the work and never writes `.grad`. The
    mode of each submodule (a backbone kept in eval mode stays there) and the `requires_grad` of each parameter are
    restored, also after an exception. A model shared with other processes does not wait for them.
    """
    if torch.compiler.is_compiling():  # which takes gradients of inputs alone, and cannot stop those of parameters
        before = [(module, module.training) for module in model.modules()]
        model.eval()
        yield model
        for module, training in before:
            module.training = training
        return
    modes = [(module, module.training) for module in model.modules()]
    trainable = [parameter for parameter in model.parameters() if parameter.requires_grad]
    shared = [module for module, _ in modes if isinstance(module, DistributedDataParallel)]
    try:
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


@contextmanager
def eval_temporarily(model: nn.Module) -> Iterator[nn.Module]:
    """Put every submodule into eval mode until the block ends; parameters keep their gradients.

    For losses in which each image must stand for itself: the passes inside are trained through.
    """
    modes = [(module, module.training) for module in model.modules()]
    try:
        model.eval()
        yield model
    finally:
        for module, training in modes:
            module.training = training
