"""Every method learns the digits."""

import pytest
import torch

from dign.core.seeds import make_generator
from dign.data.loading import load
from dign.methods import METHODS, AugMix, DiGN
from dign.models import build, channel_statistics

# Chance is 10 %. DeepAugment's distortions are strong for three epochs at 8x8.
LEAST = {"deepaugment": 80}


@pytest.fixture(scope="module")
def digits():
    return load("digits", size=8)


@pytest.mark.parametrize("key", [*METHODS, "dign+augmix"])
def test_it_learns(key, digits):
    method = DiGN() + AugMix() if key == "dign+augmix" else METHODS[key]()
    images, labels = digits.train.images.float() / 255, digits.train.labels
    mean, std = channel_statistics(digits.train.images)
    model = build("tinynet", classes=10, image_size=digits.image_size, mean=mean, std=std)
    epochs, batch = 3, 64
    steps = epochs * (len(images) // batch)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=steps)
    for step in range(steps):
        order = make_generator(0, "order", step)
        chosen = torch.randint(len(images), (batch,), generator=order)
        outcome = method(model, images[chosen], labels[chosen], generator=make_generator(0, "method", step))
        optimizer.zero_grad()
        outcome.loss.backward()
        optimizer.step()
        schedule.step()
    model.eval()
    with torch.no_grad():
        predicted = method.predict(model, digits.test.images.float() / 255, make_generator(0, "predict"))
    accuracy = 100 * (predicted.argmax(1) == digits.test.labels).float().mean().item()
    print(f"{key}: {accuracy:.1f} %")
    assert accuracy > LEAST.get(key, 92)
