"""DiGN, or any other method, in a LightningModule.

    pip install 'dign[lightning]'
    python examples/lightning_module.py     a small net on the digits, a few seconds

Lightning keeps its loop, its loggers and its devices; the method takes the place of the loss.
"""

import lightning
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from dign.core.pixels import to_float
from dign.core.seeds import make_generator
from dign.data import load
from dign.methods import DiGN, Method


class Classifier(lightning.LightningModule):
    """A model trained by a method of dign."""

    def __init__(self, model: nn.Module, method: Method, seed: int = 0) -> None:
        super().__init__()
        self.model, self.method, self.seed = model, method, seed

    def training_step(self, batch: tuple[Tensor, Tensor], number: int) -> Tensor:
        # Seeded from the step: a resumed run goes on as the undisturbed one.
        generator = make_generator(self.seed, "method", self.global_step, self.device)
        outcome = self.method(self.model, *batch, generator=generator)
        self.log_dict({f"train/{name}": value for name, value in outcome.terms.items()})
        return outcome.loss

    def validation_step(self, batch: tuple[Tensor, Tensor], number: int) -> None:
        images, labels = batch
        predicted = self.method.predict(self.model, images).argmax(1)
        self.log("accuracy", 100 * (predicted == labels).float().mean(), prog_bar=True)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.05, momentum=0.9)


def main(epochs: int = 5) -> float:
    lightning.seed_everything(0, verbose=False)
    data = load("digits", size=8, validation=0)
    train, test = (TensorDataset(to_float(split.images), split.labels) for split in (data.train, data.test))
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.Flatten(), nn.Linear(64 * 16, 10),
    )  # fmt: skip
    trainer = lightning.Trainer(
        max_epochs=epochs, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False,
    )  # fmt: skip
    trainer.fit(
        Classifier(model, DiGN(sigma_max=0.4, weight=1.0)),
        DataLoader(train, batch_size=70, shuffle=True),
        DataLoader(test, batch_size=len(test)),
    )
    accuracy = trainer.callback_metrics["accuracy"].item()
    print(f"test accuracy {accuracy:.1f} %")
    return accuracy


if __name__ == "__main__":
    main()
