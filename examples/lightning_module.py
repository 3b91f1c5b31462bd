"""DiGN, or any other method, in a LightningModule.

    pip install 'dign[lightning]'
    python examples/lightning_module.py     a small network on the digits, a few seconds

Lightning keeps its loop, its loggers and its devices; the method takes the place of the loss.
"""

import lightning
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import dign


class Classifier(lightning.LightningModule):
    """A model trained by a method of dign."""

    def __init__(self, model: nn.Module, method: dign.Method) -> None:
        super().__init__()
        self.model, self.method = model, method

    def training_step(self, batch: tuple[Tensor, Tensor], number: int) -> Tensor:
        # Seeded from the step: a resumed run draws the noise that the undisturbed one would have drawn.
        generator = torch.Generator(self.device).manual_seed(self.global_step)
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
    data = dign.load_data("digits", size=8)
    train, test = (TensorDataset(split.images / 255, split.labels) for split in (data.train, data.test))
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.Flatten(), nn.Linear(64 * 16, 10),
    )  # fmt: skip
    trainer = lightning.Trainer(
        max_epochs=epochs, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False,
    )  # fmt: skip
    trainer.fit(
        Classifier(model, dign.DiGN(sigma_max=0.4, weight=1.0)),
        DataLoader(train, batch_size=70, shuffle=True),
        DataLoader(test, batch_size=len(test)),
    )
    accuracy = trainer.callback_metrics["accuracy"].item()
    print(f"test accuracy {accuracy:.1f} %")
    return accuracy


if __name__ == "__main__":
    main()
