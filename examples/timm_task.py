"""DiGN, or any other method, as a training task of timm (`timm.task`): a task returns a loss, and so does a method.

    pip install 'dign[timm]'                   timm needs torchvision
    python examples/timm_task.py               a small network of timm's on the digits, about a minute

timm's own `train.py` builds its tasks itself; this loop uses one as that script does. Images go to the model in [0,1],
because noise is measured there: `dign.Normalized` around the network takes over from timm's loader (give the loader
`mean=(0, 0, 0)`, `std=(1, 1, 1)`).
"""

import timm
import torch
from timm.optim import create_optimizer_v2
from timm.task import TrainingTask
from torch import Tensor, nn

import dign


class MethodTask(TrainingTask):
    """A training task whose loss is that of a method of dign."""

    def __init__(self, model: nn.Module, method: dign.Method, **kwargs) -> None:
        super().__init__(**kwargs)
        self.trainable_module, self.method = model, method

    def forward(self, input: Tensor, target: Tensor) -> dict[str, Tensor]:
        outcome = self.method(self.trainable_module, input, target)
        return {"loss": outcome.loss, "output": outcome.logits, **outcome.terms}


def main(epochs: int = 4) -> float:
    torch.manual_seed(0)
    data = dign.load_data("digits", size=32)  # timm's networks halve the sides five times
    images, labels = data.train.images / 255, data.train.labels

    model = dign.Normalized(timm.create_model("resnet10t", num_classes=10), mean=[0.3] * 3, std=[0.4] * 3)
    task = MethodTask(model, dign.DiGN(sigma_max=0.4, weight=1.0))
    optimizer = create_optimizer_v2(model, opt="adamw", lr=2e-3)

    for _ in range(epochs):
        for chosen in torch.randperm(len(images)).split(70):
            result = task(images[chosen], labels[chosen])
            optimizer.zero_grad()
            result["loss"].backward()
            optimizer.step()
        print(f"cross-entropy {result['cross_entropy']:.3f}, consistency {result['consistency']:.3f}")

    accuracy = dign.evaluate(model, data, dign.Conditions(corruptions=[])).clean.accuracy
    print(f"test accuracy {accuracy:.1f} %")
    return accuracy


if __name__ == "__main__":
    main()
