"""A small net that trains in minutes on a CPU: three stages of 3x3 convolutions with identity initialization."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional


class FastNet(nn.Module):
    """A 2x2 convolution, three stages of the given widths, global max-pool, linear.

    The first layer is set from the training images by `whiten` and stays so (its bias trains), unless `patches` says
    how many filters it shall train.
    """

    def __init__(
        self,
        classes: int,
        image_size: tuple[int, int],
        widths: Sequence[int] = (16, 64, 128),
        patches: int | None = None,
    ) -> None:
        super().__init__()
        self.whitening = patches is None
        patches = 2 * PATCH_VALUES if patches is None else patches
        self.patch = nn.Conv2d(3, patches, 2)
        self.patch.weight.requires_grad = not self.whitening
        inputs = (patches, *widths[:-1])
        self.stages = nn.Sequential(*(Stage(a, b) for a, b in zip(inputs, widths, strict=True)))
        self.linear = nn.Linear(widths[-1], classes, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stages(functional.gelu(self.patch(x)))
        # max_pool2d keeps gradients channels-last: with those of Tensor.max batch norm and GELU take six times as long.
        # amax will not do: its derivative looks for values equal to it, which torch.compile may round in another way.
        logits: Tensor = self.linear(functional.max_pool2d(x, x.shape[2:]).flatten(1))
        return logits

    @torch.no_grad()
    def whiten(self, x: Tensor) -> None:
        """Set the first layer from normalized images (N,3,H,W): its outputs are uncorrelated, most of variance near 1.

        A principal direction of variance v is scaled by 1/sqrt(v + damping). Without the damping, the directions in
        which images hardly vary would be blown up, and noise with them.
        """
        if not self.whitening:
            return
        patches = functional.unfold(x, 2).transpose(1, 2).reshape(-1, PATCH_VALUES)
        variances, directions = torch.linalg.eigh(torch.cov(patches.double().T))
        filters = (directions / (variances + WHITENING_DAMPING).sqrt()).T.to(x.dtype).view(-1, 3, 2, 2)
        self.patch.weight.copy_(torch.cat((filters, -filters)))
        assert self.patch.bias is not None
        self.patch.bias.zero_()


PATCH_VALUES = 3 * 2 * 2
"""Numbers in a 2x2 patch: the first layer has a filter for each principal direction, and one for its negative."""

WHITENING_DAMPING = 0.1
"""Added to the variances of the normalized patches, about those of noise with a standard deviation of 0.08 pixels."""


class Stage(nn.Module):
    """Convolve, halve the sides by max-pooling, convolve again; batch norm without scale and GELU after each."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.conv1, self.norm1 = conv3x3(inputs, outputs), shift_only_norm(outputs)
        self.conv2, self.norm2 = conv3x3(outputs, outputs), shift_only_norm(outputs)

    def forward(self, x: Tensor) -> Tensor:
        x = functional.gelu(self.norm1(functional.max_pool2d(self.conv1(x), 2, ceil_mode=True)))
        return functional.gelu(self.norm2(self.conv2(x)))


def conv3x3(inputs: int, outputs: int) -> nn.Conv2d:
    """A 3x3 convolution whose first `inputs` filters start as the identity: a deep stack of them passes signals."""
    conv = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
    with torch.no_grad():
        nn.init.dirac_(conv.weight[: min(inputs, outputs)])
    return conv


def shift_only_norm(channels: int) -> nn.BatchNorm2d:
    """Batch norm whose scale stays at 1: the next convolution can do what a scale would."""
    norm = nn.BatchNorm2d(channels)
    norm.weight.requires_grad = False
    return norm


def wide_fastnet(classes: int, image_size: tuple[int, int]) -> FastNet:
    """FastNet at the widths of the 2024 speed record on CIFAR-10: an hour or two of a CPU, a minute of a GPU."""
    return FastNet(classes, image_size, widths=(64, 256, 256))


def tinynet(classes: int, image_size: tuple[int, int]) -> FastNet:
    """A still smaller one that trains its first layer too, for demonstrations and tests."""
    return FastNet(classes, image_size, widths=(16, 32, 32), patches=12)
