"""DiGN, or any other method, in the Trainer of Hugging Face's transformers: `compute_loss` is all that changes.

    pip install 'dign[transformers]'
    python examples/huggingface_trainer.py     a small ResNet on the digits, some seconds

Images go to the model in [0,1], because noise is measured there: `Normalize` in front of the network does what an
image processor would have done before (leave out its `do_normalize`).
"""

import tempfile

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import Dataset, Subset
from transformers import ResNetConfig, ResNetForImageClassification, Trainer, TrainingArguments

from dign.core.pixels import to_float
from dign.core.seeds import make_generator
from dign.data import load
from dign.methods import DiGN, Method
from dign.models import Normalize


class MethodTrainer(Trainer):
    """A Trainer whose loss is that of a method of dign."""

    def __init__(self, *args, method: Method, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        self.method = method

    def compute_loss(self, model: nn.Module, inputs: dict[str, Tensor], return_outputs: bool = False, **kwargs):
        images, labels = inputs["pixel_values"], inputs["labels"]
        generator = make_generator(self.args.seed, "method", self.state.global_step, images.device)
        outcome = self.method(model, images, labels, generator=generator)
        return (outcome.loss, {"logits": outcome.logits}) if return_outputs else outcome.loss


class Classifier(nn.Module):
    """Normalization and a network of transformers, taking [0,1] images."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.normalize, self.network = Normalize([0.3] * 3, [0.4] * 3), network

    def forward(self, pixel_values: Tensor, labels: Tensor | None = None):
        return self.network(pixel_values=self.normalize(pixel_values))


class Digits(Dataset):
    """Images (3,8,8) in [0,1] under the names that transformers use."""

    def __init__(self) -> None:
        data = load("digits", size=8, validation=0)
        self.images = to_float(torch.cat((data.train.images, data.test.images)))
        self.labels = torch.cat((data.train.labels, data.test.labels))

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        return {"pixel_values": self.images[index], "labels": self.labels[index]}


def main(epochs: int = 4) -> float:
    torch.manual_seed(0)
    config = ResNetConfig(
        embedding_size=16, hidden_sizes=[16, 32], depths=[1, 1], layer_type="basic", num_labels=10,
        downsample_in_first_stage=False,
    )  # fmt: skip
    data, order = Digits(), torch.randperm(1797).tolist()
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder, num_train_epochs=epochs, per_device_train_batch_size=50, per_device_eval_batch_size=397,
            learning_rate=3e-3, report_to=[], save_strategy="no", disable_tqdm=True, use_cpu=True,
            label_names=["labels"],
        )  # fmt: skip
        trainer = MethodTrainer(
            model=Classifier(ResNetForImageClassification(config)),
            args=arguments,
            method=DiGN(sigma_max=0.4, weight=1.0),
            train_dataset=Subset(data, order[:1400]),
            eval_dataset=Subset(data, order[1400:]),
            compute_metrics=lambda outcome: {"accuracy": 100 * np.mean(outcome[0].argmax(1) == outcome[1])},
        )
        trainer.train()
        accuracy = trainer.evaluate()["eval_accuracy"]
    print(f"test accuracy {accuracy:.1f} %")
    return accuracy


if __name__ == "__main__":
    main()
