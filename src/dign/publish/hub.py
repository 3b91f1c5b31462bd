"""Hub folders: a trained classifier in Hugging Face's layout (config.json, model.safetensors, README.md)."""

from __future__ import annotations

import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

from huggingface_hub import ModelCard, ModelCardData, PyTorchModelHubMixin
from torch import Tensor, nn

from dign.core.errors import UserError, summarize_error
from dign.data.names import hide_folder_path
from dign.evaluation.conclusion import is_of_calibrator
from dign.evaluation.results import Results
from dign.methods.base import Method
from dign.methods.factory import make_method, settings_of
from dign.models import build
from dign.publish.model_card import card_text, read_results
from dign.runs.calibrator import CALIBRATION_FILE, Calibrator, read_calibrator, write_calibrator
from dign.runs.checkpoints import load_weights, save_weights
from dign.runs.folder import Run
from dign.runs.held_out import describe_seen
from dign.runs.hub_config import CONFIG, WEIGHTS, read_hub_config
from dign.runs.seen_images import CALIBRATION_IMAGES_FILE, SEEN_FILE


class HubModel(nn.Sequential, PyTorchModelHubMixin, library_name="dign"):
    """A trained classifier in Hugging Face's layout: `HubModel.from_pretrained(DIR)`, then `model(images)`.

    Its tensors have the names that they have in a run's `model.safetensors`. Weights are read only from safetensors and
    must fit exactly.

    Args:
        model: The name of an architecture.
        classes: The names of the classes.
        image_size: Height and width of the images.
        mean: Mean of the training images per channel, for the normalization inside the model.
        std: Standard deviation of the training images per channel.
        data: The name of the data set that it was trained on.
        method: The key of the training method, such as "dign+augmix".
        settings: The settings of each part of the method.
        framing: How a picture of any shape is brought to the image size, as `dign.data.framing.Framing` has it.
        seen: How many images of the data it was trained on, and which share was held out with which seed.

    Its logits are calibrated where the folder has a calibration.json.
    """

    def __init__(
        self,
        *,
        model: str,
        classes: list[str],
        image_size: list[int],
        mean: list[float],
        std: list[float],
        data: str,
        method: str,
        settings: dict[str, dict[str, Any]],
        framing: dict[str, Any] | None = None,
        seen: dict[str, Any] | None = None,
    ) -> None:
        size = (image_size[0], image_size[1])
        super().__init__(*build(model, classes=len(classes), image_size=size, mean=mean, std=std).children())
        self.classes, self.image_size, self.data = classes, size, data
        self.method_key, self.settings, self.framing = method, settings, framing or {}
        self.seen = seen
        self.calibrator: Calibrator | None = None

    def forward(self, images: Tensor) -> Tensor:
        """Logits (N,C) of images (N,3,H,W) in [0,1], calibrated where the model has a calibrator."""
        logits: Tensor = super().forward(images)  # type: ignore[no-untyped-call]
        return logits if self.calibrator is None else self.calibrator(logits)

    @property
    def method(self) -> Method:
        return make_method(self.method_key, self.settings)

    def _save_pretrained(self, save_directory: Path) -> None:
        save_weights(save_directory / WEIGHTS, self, format="pt")
        if self.calibrator is not None:
            write_calibrator(save_directory, self.calibrator)

    @classmethod
    def _from_pretrained(cls, *, model_id: str, map_location: str = "cpu", **options: Any) -> HubModel:
        folder = Path(model_id)
        if not folder.is_dir():
            folder = _download(model_id, options)
        model = cls(**read_hub_config(folder))
        load_weights(folder / WEIGHTS, model)
        model.calibrator = read_calibrator(folder, len(model.classes))
        return model.to(map_location).eval()

    def generate_model_card(
        self, *, results: Results | None = None, license: str | None = None, **kwargs: Any
    ) -> ModelCard:
        text = card_text(
            {
                "model": self._hub_mixin_config,
                "method": self.method.title,
                "settings": self.settings,
                "calibrator": self.calibrator,
            },
            results,
        )
        header = ModelCardData(library_name="dign", license=license, pipeline_tag="image-classification", tags=["dign"])
        return ModelCard(f"---\n{header.to_yaml()}\n---\n\n{text}")


def _download(model_id: str, options: dict[str, Any]) -> Path:
    """Download the files that a model needs into the cache of `huggingface_hub`."""
    from huggingface_hub import snapshot_download

    known = {key: options[key] for key in ("revision", "cache_dir", "force_download", "token", "local_files_only")}
    return Path(snapshot_download(model_id, allow_patterns=[CONFIG, WEIGHTS, CALIBRATION_FILE], **known))


def save_hub_folder(run: Run, folder: Path | str, *, license: str | None = None, push_to: str | None = None) -> Path:
    """Write a finished run as a hub folder.

    Args:
        run: The finished run.
        folder: The folder to make; it must not exist, or be empty.
        license: The license of the weights for the model card, such as "cc-by-4.0"; none is named by default.
        push_to: A repository, OWNER/NAME, to upload the folder to.

    Returns:
        The folder, which is complete: on failure it is not made at all.

    Raises:
        UserError: If the folder exists, the run's results are broken, or the upload fails (the folder is kept then).
    """
    folder = Path(folder)
    if folder.resolve() == Path.cwd():
        raise UserError("the current directory cannot become a hub folder: name a new one")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder} exists already: choose another folder, or remove it")
    model = HubModel(
        model=run.config.model,
        classes=run.classes,
        image_size=list(run.image_size),
        mean=run.info["mean"],
        std=run.info["std"],
        data=hide_folder_path(run.config.data),
        method=run.config.method,
        settings=settings_of(run.method()),
        framing=asdict(run.framing),
        seen=describe_seen(run),
    )
    model.load_state_dict(run.model().state_dict())
    model.calibrator = read_calibrator(run.path, len(run.classes))
    partial = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        results = read_results(run.path)
        measured = results if results and is_of_calibrator(results, model.calibrator) else None
        model.save_pretrained(partial, model_card_kwargs={"results": measured, "license": license})
        for name in (SEEN_FILE, CALIBRATION_IMAGES_FILE):
            if (run.path / name).is_file():
                shutil.copyfile(run.path / name, partial / name)
        if folder.exists():
            folder.rmdir()
        partial.rename(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    if push_to:
        _push(folder, push_to)
    return folder


def _push(folder: Path, repository: str) -> None:
    from huggingface_hub import HfApi

    try:
        api = HfApi()
        api.create_repo(repository, exist_ok=True)
        api.upload_folder(repo_id=repository, folder_path=folder)
    except Exception as error:  # the network library raises errors of its own; the folder is kept
        reason = summarize_error(error)
        raise UserError(f"{folder} was saved, but not uploaded to {repository}: {reason}") from error
