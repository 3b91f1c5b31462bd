"""A run is a folder: what it holds, how it is made, and how it is opened again."""

from __future__ import annotations

import hashlib
import platform
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from dign.core.checks import check_tables, find_invalid_facts
from dign.core.errors import UserError, join_names, quote_path
from dign.core.files import read_json, write_json, write_text
from dign.core.locks import lock_folder
from dign.core.provenance import git_commit, now, versions
from dign.data.dataset import DataSet, Split
from dign.data.names import FOLDER_PREFIX
from dign.data.sources.folder import has_own_test_split
from dign.methods.base import Method
from dign.methods.factory import make_method, settings_of
from dign.models import build
from dign.runs.checkpoints import load_weights
from dign.runs.config import RunConfig, read_toml
from dign.runs.hub_config import hub_folder, is_hub_folder
from dign.runs.noise_levels import unset_noise_levels, with_noise_levels


@dataclass(frozen=True)
class Run:
    """An open run folder: `config.toml`, `run.json`, `metrics.jsonl`, `checkpoint.safetensors`,
    `model.safetensors` once training has finished, `results.json` once it was evaluated."""

    path: Path
    config: RunConfig
    info: dict[str, Any]

    @property
    def finished(self) -> bool:
        return self.weights.exists()

    @property
    def weights(self) -> Path:
        return self.path / "model.safetensors"

    @property
    def checkpoint(self) -> Path:
        return self.path / "checkpoint.safetensors"

    @property
    def classes(self) -> list[str]:
        return list(self.info["classes"])

    @property
    def image_size(self) -> tuple[int, int]:
        return tuple(self.info["image_size"])

    def method(self) -> Method:
        return method_of(self.config)

    def data(self) -> DataSet:
        """The data that the run was trained on, with the same splits.

        A folder of images is looked for where it was then, whatever the current directory, and else by its name.
        """
        config, folder = self.config, self.info.get("folder")
        if folder and Path(folder).is_dir():
            config = replace(config, data=f"{FOLDER_PREFIX}{folder}")
        data = load_data(config)
        self._check_unchanged(data, config.data)
        return data

    def _check_unchanged(self, data: DataSet, source: str) -> None:
        if list(data.classes) != self.classes:
            raise UserError(
                f"{self.path} was trained on the classes {join_names(self.classes)}, but {self.config.data} now has "
                f"{join_names(data.classes)}: put the data back as it was, or train a new run."
            )
        if data.image_size != self.image_size:
            then, today = ("x".join(map(str, size)) for size in (self.image_size, data.image_size))
            raise UserError(
                f"{self.path} was trained on images of {then}, but those of {self.config.data} now have {today}: put "
                "the data back as it was, or train a new run."
            )
        if not has_own_test_split(source) and not self.trained_on(data.train):
            raise UserError(
                f"The images of {self.config.data} have changed since {self.path} was trained, and so has the split: "
                "it may have been trained on some of the test images. Put them back as they were, or train a new run."
            )

    def trained_on(self, images: Split) -> bool:
        """Whether these are the training images of the run; of a data set that is checked otherwise nothing is kept."""
        known = self.info.get("training_sha256")
        return known is None or known == digest(images)

    def untrained_model(self) -> nn.Module:
        return build(
            self.config.model,
            classes=len(self.classes),
            image_size=self.image_size,
            mean=self.info["mean"],
            std=self.info["std"],
            seed=self.config.seed,
        )

    def model(self) -> nn.Module:
        """The trained model, in eval mode, on the CPU."""
        if not self.finished:
            raise UserError(
                f"{self.path} has not finished training: go on with `dign train --resume {quote_path(self.path)}`."
            )
        model = self.untrained_model()
        load_weights(self.weights, model)
        return model.eval()


def load_run(path: Path | str) -> Run:
    """Open an existing run folder."""
    path = Path(path)
    if is_hub_folder(hub_folder(path)):
        raise UserError(
            f"{path} is a hub folder, where a run folder is wanted: only predict, play, `train --init` and "
            "`evaluate --model hub:DIR --data NAME` take one."
        )
    if not (path / "config.toml").is_file():
        raise UserError(f"{path} is not a run folder: it has no config.toml. `dign train` makes one.")
    config = RunConfig.from_mapping(read_toml(path / "config.toml"))
    try:
        info = _checked(read_json(path / "run.json"))
    except (OSError, ValueError) as error:
        raise UserError(f"{path / 'run.json'} cannot be used ({error}): the run folder is damaged.") from error
    return Run(path, config, info)


def _checked(info: Any) -> dict[str, Any]:
    """The contents of a `run.json`, if all that is read of it later is there and makes sense."""
    if not isinstance(info, dict):
        raise ValueError("it is not an object")
    wrong = find_invalid_facts(info)
    if type(info.get("training_images", 0)) is not int:
        wrong.append("training_images")
    wrong += [name for name in ("folder", "training_sha256") if not isinstance(info.get(name, ""), str)]
    if not isinstance(info.get("notes", []), list) or not all(isinstance(note, str) for note in info.get("notes", [])):
        wrong.append("notes")
    if "init" in info and not (isinstance(info["init"], dict) and isinstance(info["init"].get("sha256"), str)):
        wrong.append("init")
    if wrong:
        raise ValueError(f"{', '.join(wrong)}: missing or not what it should be")
    return info


BEGINNINGS = {".lock", "run.json", ".run.json.partial", ".config.toml.partial"}
"""What may lie in a folder whose run was killed while the folder was made."""


def check_free(path: Path | str) -> None:
    """Refuse a folder that holds anything, a run or a person's own files."""
    path = Path(path)
    if path.exists() and (not path.is_dir() or not {child.name for child in path.iterdir()} <= BEGINNINGS):
        raise UserError(
            f"{path} exists already: choose another --out, or continue it with "
            f"`dign train --resume {quote_path(path)}`."
        )


def begun_by(job: str | None, config: RunConfig, path: Path | str) -> bool:
    """Whether the run in `path` is the one that this same job began, before its processes were started again."""
    path = Path(path)
    if job is None or not (path / "config.toml").is_file():
        return False
    run, wanted = load_run(path), replace(config, settings=settings_of(method_of(config)))
    return run.info.get("job") == job and run.config.to_toml() == wanted.to_toml()


def create_run(
    path: Path | str,
    config: RunConfig,
    data: DataSet,
    mean: list[float],
    std: list[float],
    machine: Mapping[str, str] | None = None,
    **facts: Any,
) -> Run:
    """Make a run folder with its resolved configuration; a folder that exists already is never written over.

    `machine` says where it runs (`devices.describe_device`); `facts` are further entries of `run.json`.
    """
    path = Path(path)
    check_free(path)
    method = method_of(config)
    config = replace(config, settings=settings_of(method))
    info = {
        "classes": list(data.classes),
        "image_size": list(data.image_size),
        "mean": mean,
        "std": std,
        "training_images": len(data.train),
        **_about_folder(config.data, data),
        "cost": {**asdict(method.cost), "standard_steps": method.cost.standard_steps},
        "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
        "commit": git_commit(),
        "started": now(),
        "versions": versions(),
        "machine": {"threads": torch.get_num_threads(), "system": platform.platform(), **(machine or {})},
        **facts,
    }
    write_json(path / "run.json", info)
    write_text(path / "config.toml", config.to_toml())
    return Run(path, config, info)


def _about_folder(name: str, data: DataSet) -> dict[str, str]:
    """Where a folder of images lies, for a run that is used from another directory, and what was in it."""
    if not name.startswith(FOLDER_PREFIX):
        return {}
    place = Path(name.removeprefix(FOLDER_PREFIX)).expanduser().resolve()
    return {"folder": str(place), "training_sha256": digest(data.train)}


def digest(split: Split) -> str:
    """The SHA-256 of a split's images and labels."""
    sha = hashlib.sha256()
    for part in (split.images, split.labels):
        for some in part.split(1024):  # the whole at once would be a copy of it
            sha.update(some.contiguous().numpy().tobytes())
    return sha.hexdigest()


@contextmanager
def locked(path: Path | str) -> Iterator[None]:
    """Hold a run folder alone; the lock goes with the process, however that ends."""
    with lock_folder(Path(path), "working in"):
        yield


def method_of(config: RunConfig) -> Method:
    """The method of a configuration; on a person's own images a noise level that is not set follows their size."""
    settings = config.settings
    check_tables(settings)
    if config.data.startswith(FOLDER_PREFIX) and unset_noise_levels(config):
        with suppress(UserError):  # images that cannot be read are named by whoever loads them to train
            settings = with_noise_levels(config, config.size or min(load_data(config).image_size))
    return make_method(config.method, settings, data=config.data, label_smoothing=config.label_smoothing)


def load_data(config: RunConfig) -> DataSet:
    from dign.data import load

    return load(
        config.data, size=config.size or None, validation=config.validation, validation_seed=config.validation_seed
    )
