"""A run is a folder: what it holds, how it is created, and how it is loaded."""

from __future__ import annotations

import os
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
from dign.core.errors import ResumableError, UserError, join_names
from dign.core.files import MAX_JSON_SIZE, parse_json, read_json, read_limited, write_json, write_text
from dign.core.locks import lock_folder
from dign.core.provenance import git_commit, now, versions
from dign.data.dataset import DataSet, Split
from dign.data.framing import Framing
from dign.data.names import PICTURE_PREFIXES, SHARDS_PREFIX, split_prefix
from dign.data.sources.folder import has_own_test_split
from dign.methods.base import Method
from dign.methods.factory import make_method, settings_of
from dign.models import build
from dign.runs.checkpoints import load_weights
from dign.runs.config import RunConfig
from dign.runs.hub_config import hub_folder, is_hub_folder
from dign.runs.noise_levels import fill_noise_levels, find_unset_noise_levels
from dign.runs.seen_images import SEEN_FILE, hash_split, read_seen, write_seen
from dign.runs.toml_files import read_toml


@dataclass(frozen=True)
class Run:
    """A run folder: `config.toml`, `run.json`, `metrics.jsonl`, `checkpoint.safetensors`,
    `model.safetensors` once training has finished, `results.json` once it was evaluated; for a folder of images also
    `training_images.txt`, digests of what it was trained on.

    Attributes:
        path: The folder.
        config: The resolved configuration, as in `config.toml`.
        info: The contents of `run.json`. Always: `classes`, `image_size` (height, width), `mean` and `std` of the
            training images' channels. From `create_run` also `training_images`, `cost` of a step, `command`, `commit`,
            `started`, `versions`, `machine`, `notes`; for a folder of images `folder` and `training_sha256`, and
            `skipped_images` where some could not be read; with `init` its `sha256` and `fresh` tensors; after training
            `finished` and `seconds`.

    Example:
        >>> run = load_run("runs/photos")  # doctest: +SKIP
        >>> run.finished, run.classes  # doctest: +SKIP
        (True, ['cat', 'dog'])
    """

    path: Path
    config: RunConfig
    info: dict[str, Any]

    @property
    def finished(self) -> bool:
        """Whether training has finished."""
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
    def framing(self) -> Framing:
        """How a picture of any shape is brought to the size of the run's images."""
        return make_framing(self.config)

    @property
    def image_size(self) -> tuple[int, int]:
        height, width = self.info["image_size"]
        return height, width

    def validation(self) -> dict[str, float] | None:
        """Epoch, accuracy, balanced accuracy (both in percent) and loss on the validation images, of the weights that
        the run ends with.

        None where they were never validated, or the records cannot be read.
        """
        with suppress(OSError, ValueError, KeyError, TypeError, StopIteration):
            if self.config.keep == "best":
                record = read_json(self.path / "best.json")
                scores = record
            else:
                lines = read_limited(self.path / "metrics.jsonl", MAX_JSON_SIZE).decode().splitlines()
                record = next(record for record in map(parse_json, reversed(lines)) if "validation" in record)
                scores = record["validation"]
            names = [name for name in ("accuracy", "loss", "balanced_accuracy") if name in scores]
            return {"epoch": float(record["epoch"]), **{name: float(scores[name]) for name in names}}
        return None

    def method(self) -> Method:
        return make_run_method(self.config)

    def data(self) -> DataSet:
        """The data that the run was trained on, with the same splits.

        A folder of images is looked up where it was then, and if it is gone, by its name in the configuration.
        """
        config, folder = self.config, self.info.get("folder")
        if folder and (Path(folder).is_dir() or config.data.startswith(SHARDS_PREFIX)):
            config = replace(config, data=f"{split_prefix(config.data)[0]}{folder}")
        data = load_run_data(config)
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
        return known is None or known == hash_split(images)

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
            raise ResumableError(f"{self.path} has not finished training: resume it first.", self.path)
        model = self.untrained_model()
        load_weights(self.weights, model)
        return model.eval()


def load_run(path: Path | str) -> Run:
    """Load an existing run folder.

    Args:
        path: The folder that `train` created.

    Returns:
        The run, finished or not.

    Raises:
        UserError: `path` is not a run folder, or a file in it is damaged.
    """
    path = Path(path)
    if is_hub_folder(hub_folder(path)):
        raise UserError(
            f"{path} is a hub folder, but a run folder is expected: a hub folder can be predicted with, fine-tuned "
            "from and evaluated as a model."
        )
    if path.is_file():
        raise UserError(f"{path} is a file, not a run folder: expected a folder that `dign train` made.")
    if not path.exists():
        raise UserError(f"There is no run folder {path}: expected a folder that `dign train` made.")
    if not (path / "config.toml").is_file():
        raise UserError(f"{path} is not a run folder: it has no config.toml. `dign train` makes one.")
    config = RunConfig.from_mapping({"preset": "paper", **read_toml(path / "config.toml")})
    try:
        info = _check_info(read_json(path / "run.json"))
    except (OSError, ValueError) as error:
        raise UserError(f"{path / 'run.json'} cannot be used ({error}): the run folder is damaged.") from error
    return Run(path, config, info)


def _check_info(info: Any) -> dict[str, Any]:
    """Return the contents of a `run.json` if every entry that is read later exists and is valid."""
    if not isinstance(info, dict):
        raise ValueError("it is not an object")
    wrong = find_invalid_facts(info)
    if type(info.get("training_images", 0)) is not int:
        wrong.append("training_images")
    if type(info.get("seconds", 0.0)) not in (int, float):
        wrong.append("seconds")
    wrong += [name for name in ("folder", "training_sha256") if not isinstance(info.get(name, ""), str)]
    if not isinstance(info.get("notes", []), list) or not all(isinstance(note, str) for note in info.get("notes", [])):
        wrong.append("notes")
    if "init" in info and not (isinstance(info["init"], dict) and isinstance(info["init"].get("sha256"), str)):
        wrong.append("init")
    if wrong:
        raise ValueError(f"{', '.join(wrong)}: missing or invalid")
    return info


SETUP_FILES = {".lock", "run.json", SEEN_FILE, *(f".{name}.partial" for name in ("run.json", SEEN_FILE, "config.toml"))}
"""What a folder may hold if its run was killed while the folder was created."""


def check_new_folder(path: Path | str) -> None:
    """Refuse a folder that contains anything: a run, or a user's own files."""
    path = Path(path)
    if path.exists() and (not path.is_dir() or not {child.name for child in path.iterdir()} <= SETUP_FILES):
        message = f"{path} exists already: choose another folder"
        if (path / "config.toml").is_file():
            raise ResumableError(f"{message}, or resume the run in it.", path)
        raise UserError(f"{message}.")


def was_started_by(job: str | None, config: RunConfig, path: Path | str) -> bool:
    """Whether this torchrun job created the run in `path`, before its processes were restarted."""
    path = Path(path)
    if job is None or not (path / "config.toml").is_file():
        return False
    run = load_run(path)
    wanted = replace(config, settings=settings_of(make_run_method(config)), epochs=config.epochs or run.config.epochs)
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
    """Create a run folder with its resolved configuration; an existing folder is never overwritten.

    `machine` describes the device (`devices.describe_device`); `facts` are further entries of `run.json`.
    """
    path = Path(path)
    check_new_folder(path)
    method = make_run_method(config)
    config = replace(config, settings=settings_of(method))
    info = {
        "classes": list(data.classes),
        "image_size": list(data.image_size),
        "mean": mean,
        "std": std,
        "training_images": len(data.train),
        **_note_pictures(path, config, data),
        **({"skipped_images": list(data.skipped)} if data.skipped else {}),
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


def _note_pictures(path: Path, config: RunConfig, data: DataSet) -> dict[str, str]:
    """Where a folder of images is stored, for a run that is used from another directory, and a hash of its images; the
    digests of all that are trained on, also before by the model that it starts from, go into the run's folder."""
    prefix, place = split_prefix(config.data)
    if not prefix:
        return {}
    absolute = os.path.realpath(os.path.expanduser(place))
    before = read_seen(hub_folder(config.init)) if config.init else None
    earlier = before.train if before is not None else frozenset()
    return {"folder": absolute, "training_sha256": write_seen(path, data, earlier)}


@contextmanager
def lock_run(path: Path | str) -> Iterator[None]:
    """Lock a run folder against other processes; the system releases the lock when the process ends."""
    with lock_folder(Path(path), "working in"):
        yield


def make_run_method(config: RunConfig) -> Method:
    """Make the method of a configuration; on a folder of images, noise levels that are not set follow the size."""
    settings = config.settings
    check_tables(settings)
    if config.data.startswith(PICTURE_PREFIXES) and find_unset_noise_levels(config):
        with suppress(UserError):  # unreadable images are reported when they are loaded to train on
            settings = fill_noise_levels(config, config.size or min(load_run_data(config).image_size))
    return make_method(config.method, settings, data=config.data, label_smoothing=config.label_smoothing)


def load_run_data(config: RunConfig) -> DataSet:
    """Load the data of a configuration, with its splits."""
    from dign.data import load

    return load(
        config.data,
        size=config.size or None,
        validation=config.validation,
        validation_seed=config.validation_seed,
        skip_unreadable=config.skip_unreadable,
        framing=make_framing(config),
        cache=config.cache,
    )


def make_framing(config: RunConfig) -> Framing:
    """How the pictures of a configuration are brought to the size of its images."""
    return Framing(config.fit, config.crop_fraction, config.interpolation)
