"""DenseNet-121 (Huang et al., 2017) for small images, at the growth rate of 12 that the paper's code uses."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from dign.models.resnet import stem


class DenseLayer(nn.Module):
    """Batch norm, ReLU and convolution twice (1x1, then 3x3); the result is appended to the input."""

    def __init__(self, inputs: int, growth: int) -> None:
        super().__init__()
        self.norm1 = nn.BatchNorm2d(inputs)
        self.conv1 = nn.Conv2d(inputs, 4 * growth, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(4 * growth)
        self.conv2 = nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        y = self.conv1(functional.relu(self.norm1(x)))
        y = self.conv2(functional.relu(self.norm2(y)))
        return torch.cat([y, x], dim=1)


class Transition(nn.Module):
    """Halve the channels by a 1x1 convolution and the sides by an average."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(inputs)
        self.conv = nn.Conv2d(inputs, outputs, 1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return functional.avg_pool2d(self.conv(functional.relu(self.norm(x))), 2)


class DenseNet121(nn.Module):
    """Dense blocks of 6, 12, 24 and 16 layers. 1 000 618 parameters at 10 classes and 32x32."""

    def __init__(self, classes: int, image_size: tuple[int, int], growth: int = 12) -> None:
        super().__init__()
        channels = 2 * growth
        self.conv = stem(channels, image_size)
        layers: list[nn.Module] = []
        for block, depth in enumerate((6, 12, 24, 16)):
            if block:
                layers.append(Transition(channels, channels // 2))
                channels //= 2
            for _ in range(depth):
                layers.append(DenseLayer(channels, growth))
                channels += growth
        self.layers = nn.Sequential(*layers)
        self.norm = nn.BatchNorm2d(channels)
        self.linear = nn.Linear(channels, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = functional.relu(self.norm(self.layers(self.conv(x))))
        logits: Tensor = self.linear(x.mean(dim=(2, 3)))
        return logits
