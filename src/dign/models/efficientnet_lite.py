"""EfficientNet-Lite0 (Tan & Le, 2019, without squeeze-and-excitation): a small network for photographs."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from dign.models.preprocessing import Preprocessing

STAGES = (
    # kernel, stride, expansion, channels, blocks
    (3, 1, 1, 16, 1),
    (3, 2, 6, 24, 2),
    (5, 2, 6, 40, 2),
    (3, 2, 6, 80, 3),
    (5, 1, 6, 112, 3),
    (5, 2, 6, 192, 4),
    (3, 1, 6, 320, 1),
)


class SameConv2d(nn.Conv2d):
    """A convolution padded as TensorFlow does it: at stride 2 the odd pixel of padding is at the right and bottom."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1) -> None:
        padding = kernel // 2 if stride == 1 else 0
        super().__init__(inputs, outputs, kernel, stride, padding=padding, groups=groups, bias=False)

    def forward(self, input: Tensor) -> Tensor:
        if self.stride[0] > 1:
            input = functional.pad(input, [*self._pads(input.shape[-1]), *self._pads(input.shape[-2])])
        return super().forward(input)

    def _pads(self, side: int) -> tuple[int, int]:
        kernel, stride = self.kernel_size[0], self.stride[0]
        total = max((-(-side // stride) - 1) * stride + kernel - side, 0)
        return total // 2, total - total // 2


def conv_norm(
    inputs: int, outputs: int, kernel: int = 1, stride: int = 1, *, groups: int = 1, activate: bool = True
) -> nn.Sequential:
    """Convolution, batch norm, and ReLU6 unless `activate` is False."""
    layers = [SameConv2d(inputs, outputs, kernel, stride, groups), nn.BatchNorm2d(outputs, eps=1e-3, momentum=0.01)]
    return nn.Sequential(*layers, *([nn.ReLU6(inplace=True)] if activate else []))


class InvertedResidual(nn.Module):
    """Expand the channels, filter each of them, project them back; with a shortcut where the shape is kept."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        hidden = inputs * expansion
        self.layers = nn.Sequential(
            *([conv_norm(inputs, hidden)] if expansion > 1 else []),
            conv_norm(hidden, hidden, kernel, stride, groups=hidden),
            conv_norm(hidden, outputs, activate=False),
        )
        self.shortcut = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.layers(x)
        return x + y if self.shortcut else y


class EfficientNetLite0(nn.Module):
    """Seven stages of inverted residuals, average pool, dropout, linear. 4 652 008 parameters at 1000 classes.

    The order and shapes of its tensors are those of the published ImageNet weights, so that `init` takes them over.
    """

    preprocessing = Preprocessing(
        size=224, mean=(0.5, 0.5, 0.5), std=(0.5, 0.5, 0.5), fit="crop", crop_fraction=0.875, interpolation="bicubic"
    )
    """What the published ImageNet weights were trained with."""

    def __init__(self, classes: int, image_size: tuple[int, int], dropout: float = 0.2) -> None:
        super().__init__()
        self.stem = conv_norm(3, 32, 3, 2)
        stages, inputs = [], 32
        for kernel, stride, expansion, outputs, blocks in STAGES:
            first = InvertedResidual(inputs, outputs, kernel, stride, expansion)
            rest = (InvertedResidual(outputs, outputs, kernel, 1, expansion) for _ in range(blocks - 1))
            stages.append(nn.Sequential(first, *rest))
            inputs = outputs
        self.stages = nn.Sequential(*stages)
        self.features = conv_norm(inputs, 1280)
        self.dropout = nn.Dropout(dropout)
        self.linear = nn.Linear(1280, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                fan_out = module.kernel_size[0] ** 2 * module.out_channels // module.groups
                nn.init.normal_(module.weight, std=(2 / fan_out) ** 0.5)

    def forward(self, x: Tensor) -> Tensor:
        x = self.features(self.stages(self.stem(x)))
        logits: Tensor = self.linear(self.dropout(torch.mean(x, dim=(2, 3))))
        return logits
