"""DiGN, or any other method, in the Trainer of Hugging Face's transformers: `compute_loss` is all that changes.

    pip install 'dign[transformers]'
    python examples/huggingface_trainer.py     a small ResNet on the digits, a few seconds

Images go to the model in [0,1], because noise is measured there: `dign.Normalized` around the network does what an
image processor would have done before (switch off its `do_normalize`).
"""

import tempfile

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import Dataset
from transformers import ResNetConfig, ResNetForImageClassification, Trainer, TrainingArguments

import dign


class MethodTrainer(Trainer):
    """A Trainer whose loss is that of a method of dign."""

    def __init__(self, *args, method: dign.Method, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        self.method = method

    def compute_loss(self, model: nn.Module, inputs: dict[str, Tensor], return_outputs: bool = False, **kwargs):
        images, labels = inputs["pixel_values"], inputs["labels"]
        generator = torch.Generator(images.device).manual_seed(self.state.global_step)
        outcome = self.method(model, images, labels, generator=generator)
        return (outcome.loss, {"logits": outcome.logits}) if return_outputs else outcome.loss


class Images(Dataset):
    """A split of a data set under the names that transformers use."""

    def __init__(self, split: dign.data.Split) -> None:
        self.images, self.labels = split.images / 255, split.labels

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
    network = ResNetForImageClassification(config)
    data = dign.load_data("digits", size=8)
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder, num_train_epochs=epochs, per_device_train_batch_size=50, per_device_eval_batch_size=397,
            learning_rate=3e-3, report_to=[], save_strategy="no", disable_tqdm=True, use_cpu=True,
            label_names=["labels"], remove_unused_columns=False,
        )  # fmt: skip
        trainer = MethodTrainer(
            model=dign.Normalized(network, mean=[0.3] * 3, std=[0.4] * 3),
            args=arguments,
            method=dign.DiGN(sigma_max=0.4, weight=1.0),
            train_dataset=Images(data.train),
            eval_dataset=Images(data.test),
            compute_metrics=lambda outcome: {"accuracy": 100 * np.mean(outcome[0].argmax(1) == outcome[1])},
        )
        trainer.train()
        accuracy = trainer.evaluate()["eval_accuracy"]
    print(f"test accuracy {accuracy:.1f} %")
    return accuracy


if __name__ == "__main__":
    main()
