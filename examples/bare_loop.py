"""DiGN in a bare PyTorch loop: three lines of it are dign's.

    python examples/bare_loop.py            a small network on the digits, a few seconds

Any module from images in [0,1] to logits works, and so does any loop: a method takes the model and a batch and returns
a loss.
"""

import torch
from torch import nn

import dign


def main(epochs: int = 8) -> float:
    torch.manual_seed(0)
    data = dign.load_data("digits", size=8)
    images, labels = data.train.images / 255, data.train.labels
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.Flatten(), nn.Linear(64 * 16, 10),
    )  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

    method = dign.DiGN(sigma_max=0.4, weight=1.0, samples=3)  # 1: the method and its settings
    generator = torch.Generator().manual_seed(0)

    for _ in range(epochs):
        for chosen in torch.randperm(len(images)).split(70):
            outcome = method(model, images[chosen], labels[chosen], generator=generator)  # 2: instead of the loss
            optimizer.zero_grad()
            outcome.loss.backward()
            optimizer.step()
        print("  ".join(f"{name} {value:.3f}" for name, value in outcome.terms.items()))

    results = dign.evaluate(model, data, dign.Conditions(severities=[1, 3, 5]))  # 3: clean and under corruptions
    print(results)
    return results.clean.accuracy


if __name__ == "__main__":
    main()
