"""The cross-entropy of each image, for methods that differentiate it with respect to the image."""

from torch import Tensor, nn

from dign.core.derivatives import ImageFunction
from dign.core.outputs import logits_of, release
from dign.methods.batch_checks import class_rows
from dign.methods.labels import Labels, cross_entropy


def cross_entropy_by_image(logits: Tensor, y: Labels, images: int) -> Tensor:
    """The plain cross-entropy of each image (N,), from logits as `terms` gets them; for segmentation the pixels' mean.

    >>> import torch
    >>> cross_entropy_by_image(torch.zeros(8, 10), torch.zeros(2, 2, 2, dtype=torch.long), 2)
    tensor([2.3026, 2.3026])
    """
    return cross_entropy(logits, y.flatten(), reduction="none").view(images, -1).mean(1)


def image_losses(model: nn.Module, y: Labels) -> ImageFunction:
    """The function from images to the cross-entropy of each, which can be differentiated with respect to them.

    >>> import torch
    >>> image_losses(nn.Flatten(), torch.tensor([0, 1]))(torch.zeros(2, 1, 2, 2)).shape
    torch.Size([2])
    """
    return lambda x: cross_entropy_by_image(class_rows(release(logits_of(model(x))), y), y, len(x))
