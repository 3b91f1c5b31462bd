"""A small net that trains in minutes on a CPU: three stages of 3x3 convolutions with identity initialisation."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional


def conv3x3(inputs: int, outputs: int) -> nn.Conv2d:
    """A 3x3 convolution whose first `inputs` filters start as the identity: a deep stack of them passes signals."""
    conv = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
    with torch.no_grad():
        nn.init.dirac_(conv.weight[: min(inputs, outputs)])
    return conv


class Stage(nn.Module):
    """Convolve, halve the sides by max-pooling, convolve again; batch norm without scale and GELU after each."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.conv1, self.norm1 = conv3x3(inputs, outputs), shift_only_norm(outputs)
        self.conv2, self.norm2 = conv3x3(outputs, outputs), shift_only_norm(outputs)

    def forward(self, x: Tensor) -> Tensor:
        x = functional.gelu(self.norm1(functional.max_pool2d(self.conv1(x), 2, ceil_mode=True)))
        return functional.gelu(self.norm2(self.conv2(x)))


def shift_only_norm(channels: int) -> nn.BatchNorm2d:
    """Batch norm whose scale stays at 1: the next convolution can do what a scale would."""
    norm = nn.BatchNorm2d(channels)
    norm.weight.requires_grad = False
    return norm


class FastNet(nn.Module):
    """A 2x2 convolution, three stages of the given widths, global max-pool, linear."""

    def __init__(
        self, classes: int, image_size: tuple[int, int], widths: Sequence[int] = (32, 128, 128), patches: int = 24
    ) -> None:
        super().__init__()
        self.patch = nn.Conv2d(3, patches, 2)
        inputs = (patches, *widths[:-1])
        self.stages = nn.Sequential(*(Stage(a, b) for a, b in zip(inputs, widths, strict=True)))
        self.linear = nn.Linear(widths[-1], classes, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stages(functional.gelu(self.patch(x)))
        logits: Tensor = self.linear(x.amax(dim=(2, 3)))
        return logits


def tinynet(classes: int, image_size: tuple[int, int]) -> FastNet:
    """FastNet at a quarter of the width, for demonstrations and tests."""
    return FastNet(classes, image_size, widths=(16, 32, 32), patches=12)
