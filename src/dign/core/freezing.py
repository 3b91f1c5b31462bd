"""Looking at a model without leaving a mark on it."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from torch import nn
from torch.nn.parallel import DistributedDataParallel


@contextmanager
def freeze_temporarily(model: nn.Module) -> Iterator[nn.Module]:
    """Every submodule in eval mode and every parameter without gradient, until the block ends.

    In eval mode batch norm does not mix the images of a batch, so the gradient of a sum over images holds each
    image's own gradient; without gradients for the parameters a backward pass reaches the input alone, which is
    about half the work, and `.grad` is never written. What was before is restored also after an exception:
    each submodule's own mode (a backbone kept in eval mode stays there) and each parameter's `requires_grad`.
    Where the model is shared with other processes, they are not waited for: there is no gradient to exchange.
    """
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
