"""ResNet-18 (He et al., 2015) for small images, and its wide form, as the paper uses them."""

from collections.abc import Sequence

from torch import Tensor, nn
from torch.nn import functional


class BasicBlock(nn.Module):
    """Two 3x3 convolutions and a shortcut."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x: Tensor) -> Tensor:
        y = functional.relu(self.norm1(self.conv1(x)))
        return functional.relu(self.norm2(self.conv2(y)) + self.shortcut(x))


def stem(outputs: int, image_size: tuple[int, int]) -> nn.Conv2d:
    """3x3 at stride 1 up to 48 pixels, 7x7 at stride 2 above (the paper's 64x64 Tiny-ImageNet); no max-pool."""
    if max(image_size) > 48:
        return nn.Conv2d(3, outputs, 7, stride=2, padding=3, bias=False)
    return nn.Conv2d(3, outputs, 3, padding=1, bias=False)


class ResNet18(nn.Module):
    """Four stages of two basic blocks, average pool, linear. 11 173 962 parameters at 10 classes and 32x32."""

    def __init__(self, classes: int, image_size: tuple[int, int], widths: Sequence[int] = (64, 128, 256, 512)) -> None:
        super().__init__()
        self.conv = stem(widths[0], image_size)
        self.norm = nn.BatchNorm2d(widths[0])
        inputs = (widths[0], *widths[:-1])
        self.stages = nn.Sequential(
            *(
                nn.Sequential(BasicBlock(before, width, stride), BasicBlock(width, width, 1))
                for before, width, stride in zip(inputs, widths, (1, 2, 2, 2), strict=True)
            )
        )
        self.linear = nn.Linear(widths[-1], classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stages(functional.relu(self.norm(self.conv(x))))
        logits: Tensor = self.linear(x.mean(dim=(2, 3)))
        return logits


def wide_resnet18(classes: int, image_size: tuple[int, int]) -> ResNet18:
    """ResNet-18 with five times the width. 279 019 850 parameters at 10 classes and 32x32."""
    return ResNet18(classes, image_size, widths=(320, 640, 1280, 2560))
