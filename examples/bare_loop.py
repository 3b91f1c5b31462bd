"""DiGN in a bare PyTorch loop: three lines of it are dign's.

    python examples/bare_loop.py            a small net on the digits, a few seconds

Any module from images in [0,1] to logits will do, and so will any loop: a method is called with the model and a
batch and gives back a loss.
"""

import torch
from torch import nn

from dign.core.pixels import to_float
from dign.data import load
from dign.methods import DiGN


def digits() -> tuple[torch.Tensor, torch.Tensor]:
    """Images (1797,3,8,8) in [0,1] and their labels."""
    data = load("digits", size=8, validation=0)
    images = torch.cat((data.train.images, data.test.images))
    return to_float(images), torch.cat((data.train.labels, data.test.labels))


def main(epochs: int = 8) -> float:
    torch.manual_seed(0)
    images, labels = digits()
    order = torch.randperm(len(images))
    train, test = order[:1400], order[1400:]
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.Flatten(), nn.Linear(64 * 16, 10),
    )  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

    method = DiGN(sigma_max=0.4, weight=1.0, samples=3)  # 1: the method and its settings
    generator = torch.Generator().manual_seed(0)

    for _ in range(epochs):
        for chosen in train[torch.randperm(len(train))].split(70):
            outcome = method(model, images[chosen], labels[chosen], generator=generator)  # 2: instead of the loss
            optimizer.zero_grad()
            outcome.loss.backward()
            optimizer.step()
        print("  ".join(f"{name} {value:.3f}" for name, value in outcome.terms.items()))

    model.eval()
    with torch.no_grad():
        predicted = method.predict(model, images[test])  # 3: class probabilities
        noisy = method.predict(model, images[test] + 0.3 * torch.randn(images[test].shape, generator=generator))
    accuracy = [100 * (p.argmax(1) == labels[test]).float().mean().item() for p in (predicted, noisy)]
    print(f"test accuracy {accuracy[0]:.1f} %, under Gaussian noise of 0.3: {accuracy[1]:.1f} %")
    return accuracy[0]


if __name__ == "__main__":
    main()
