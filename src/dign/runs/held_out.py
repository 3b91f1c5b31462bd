"""Images that a model has not been trained on: all that calibrating may use."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dign.core.errors import UserError, join_names
from dign.data import load
from dign.data.dataset import DataSet, Split, join_splits
from dign.data.framing import Framing
from dign.data.names import FOLDER_PREFIX, hide_folder_path, split_prefix
from dign.data.sources.folder import has_own_test_split
from dign.runs.config import RunConfig
from dign.runs.folder import Run, load_run, load_run_data
from dign.runs.hub_config import hub_folder, is_hub_folder, read_hub_config
from dign.runs.other_data import load_data_for
from dign.runs.seen_images import digest_seen, digest_split, read_calibration_images, read_seen, select_unseen


@dataclass(frozen=True)
class HeldOutImages:
    """Images with labels that a model has not been trained on.

    Attributes:
        name: The data that they are of.
        split: The images.
        left_out: How many others were left out because the model was trained, calibrated or is measured on them.
    """

    name: str
    split: Split
    left_out: int


def held_out_for_run(run: Run, name: str | None = None, *, skip_unreadable: bool = False) -> HeldOutImages:
    """The images of the run's own data, or of other data with its classes, that the run was not trained on.

    Test images of the run, wherever they are, and those of a data set that has its own, are never among them.

    Args:
        run: The run.
        name: A data set, or "folder:PATH"; by default the run's own.
        skip_unreadable: Leave out images of a folder that cannot be read.

    Raises:
        UserError: There are none, or they have other classes or sizes.
    """
    if name is None or (name == run.config.data and not name.startswith(FOLDER_PREFIX)):
        data = leave_out_trained(run, run.data())
        if not len(data.validation):
            raise _none_left(run.path, run.config.data, len(data.train))
        if seen_by_init(run):
            raise UserError(
                f"{seen_by_init(run)} of the validation images of {run.path} were training images of the model that it "
                "started from: calibrate it on other labeled images with its classes, `data=folder:PATH`."
            )
        return HeldOutImages(hide_folder_path(run.config.data), data.validation, len(data.train))
    height, width = run.image_size
    size = height if name.startswith(FOLDER_PREFIX) and height == width else run.config.size
    config = replace(run.config, data=name, size=size, validation=0.0)
    data = load_run_data(replace(config, skip_unreadable=run.config.skip_unreadable or skip_unreadable))
    seen = read_seen(run.path) or digest_seen(run.data())
    _check_fits(run.path, name, data, run.classes, run.image_size)
    trained = seen.train | seen.validation if seen_by_init(run) else seen.train
    return _leave_out(run.path, name, data, trained, _digest_own_test(run, name, skip_unreadable))


def leave_out_trained(run: Run, data: DataSet) -> DataSet:
    """A run's data without validation images that it was trained on.

    There are none, unless images were added to a folder, or removed from it, whose test images are apart: then the
    validation images are cut anew from the others. Those that the model of `init` has seen are for `seen_by_init`.
    """
    seen = read_seen(run.path)
    if seen is None or seen_by_init(run):
        return data
    return replace(data, validation=select_unseen(data.validation, seen.train))


def _digest_own_test(run: Run, name: str, skip_unreadable: bool) -> frozenset[str]:
    """Digests of the run's test images, which it is measured on: those that are kept with it; of an older run, where
    the images were, or in the folder `name` if that is the run's own, moved; none where they have gone."""
    kept = read_seen(run.path)
    if kept is not None and kept.test:
        return kept.test
    with suppress(UserError):
        return frozenset(digest_split(run.data().test))
    with suppress(UserError):
        found = load_data_for(run, name, skip_unreadable=skip_unreadable)
        return frozenset(digest_split(found.data.test)) if found.is_own else frozenset()
    return frozenset()


def held_out_for_hub(folder: Path, name: str, *, skip_unreadable: bool = False) -> HeldOutImages:
    """The images of a data set that the model of a hub folder was not trained on, as its card says.

    Args:
        folder: The hub folder.
        name: A data set, or "folder:PATH", with the model's classes.
        skip_unreadable: Leave out images of a folder that cannot be read.

    Raises:
        UserError: There are none, or the card does not say, or they have other classes or sizes.
    """
    config = read_hub_config(folder)
    data = _load_for_hub(config, name, skip_unreadable=skip_unreadable)
    _check_fits(folder, name, data, config["classes"], tuple(config["image_size"]))
    return _leave_out(folder, name, data, find_seen(folder, config), _digest_hub_test(folder, config))


def _digest_hub_test(folder: Path, config: dict[str, Any]) -> frozenset[str]:
    """Digests of the test images that are kept in a hub folder, or of the data set that it names, for measuring; none
    where that is not here."""
    kept = read_seen(folder)
    if kept is not None:
        return kept.test
    if split_prefix(config["data"])[0]:
        return frozenset()  # of own pictures a hub folder keeps no path
    with suppress(UserError):  # it is not in the cache, and nothing is downloaded for this
        return frozenset(digest_split(_load_for_hub(config, config["data"]).test))
    return frozenset()


def _load_for_hub(config: dict[str, Any], name: str, *, skip_unreadable: bool = False) -> DataSet:
    """Data as the model of a hub folder takes it: of its size, and cut as it was trained."""
    height, width = config["image_size"]
    size = height if height == width else None
    framing = Framing(**config["framing"])
    return load(name, size=size, validation=0.0, skip_unreadable=skip_unreadable, framing=framing)


def seen_by_init(run: Run) -> int:
    """How many of a run's validation images the model that it started from was trained on."""
    init = run.info.get("init")
    seen = init.get("seen") if isinstance(init, dict) else 0
    return seen if type(seen) is int else 0


def find_test_images(folder: Path, name: str | None = None) -> HeldOutImages:
    """The test images of a data set, for the model of a hub folder, but those that it was calibrated on; of a folder's
    images those that it has not seen.

    Args:
        folder: The hub folder.
        name: A data set, or "folder:PATH", with the model's classes; by default what the model was trained on.

    Raises:
        UserError: The data is not named and not known, or has other classes or sizes, or its images were all seen.
    """
    config = read_hub_config(folder)
    if name is None and split_prefix(config["data"])[0]:
        raise UserError(f"{folder} was trained on {config['data']}, which need not be here: name images with `data`.")
    name = name or str(config["data"])
    data = _load_for_hub(config, name)
    _check_fits(folder, name, data, config["classes"], tuple(config["image_size"]))
    seen = read_calibration_images(folder)
    if name.startswith(FOLDER_PREFIX):
        seen |= find_seen(folder, config)
    split = select_unseen(data.test, seen)
    if not len(split):
        raise UserError(
            f"{folder} was trained or calibrated on all test images of {hide_folder_path(name)}: name others."
        )
    return HeldOutImages(hide_folder_path(name), split, len(data.test) - len(split))


def leave_out_seen(folder: Path, data: DataSet, split: str) -> tuple[DataSet, int]:
    """Data to measure a model on, without images that it was trained or calibrated on, and how many those were.

    Args:
        folder: A run folder or a hub folder, which keeps digests of images that are not of a named data set.
        data: The data.
        split: The split to be measured: the others stay as they are. Training images stay in "train", and validation
            images in "validation".

    Raises:
        UserError: There is none left.
    """
    kept = read_seen(folder)
    avoided = read_calibration_images(folder)
    if kept is not None and split != "train":
        avoided |= kept.train if split == "validation" else kept.train | kept.validation
    before: Split = getattr(data, split)
    left = select_unseen(before, avoided)
    if len(before) and not len(left):
        raise UserError(
            f"{folder} was trained or calibrated on all {len(before)} {split} images of "
            f"{hide_folder_path(data.name)}: name others to measure it on with `data`."
        )
    parts: dict[str, Any] = {split: left}
    return replace(data, **parts), len(before) - len(left)


def find_seen(folder: Path, config: dict[str, Any]) -> frozenset[str]:
    """The digests of the images that the model of a hub folder was trained on.

    Raises:
        UserError: The folder does not say which.
    """
    kept = read_seen(folder)
    if kept is not None:
        return kept.train
    seen = config.get("seen")
    if seen is None or config["data"].startswith(FOLDER_PREFIX):
        raise UserError(
            f"{folder} does not say which images of {config['data']} its model was trained on (`seen` in config.json), "
            "so that held-out images cannot be told from others: save it again from its run with `dign hub save`."
        )
    height, width = config["image_size"]
    size = height if height == width else None
    data = load(config["data"], size=size, validation=seen["validation"], validation_seed=seen["validation_seed"])
    return digest_seen(data).train


def count_seen_by_init(config: RunConfig, data: DataSet) -> int:
    """How many validation images of a run to be were training images of the model that it starts from.

    Known where `init` is a run folder or a hub folder that keeps digests, or was trained on the same named data set.
    """
    place = hub_folder(config.init)
    if not len(data.validation) or not config.init or not place.is_dir():
        return 0
    kept = read_seen(place)
    seen = kept.train if kept is not None else _trained_on_same_data(place, config)
    return sum(digest in seen for digest in digest_split(data.validation)) if seen else 0


def _trained_on_same_data(place: Path, config: RunConfig) -> frozenset[str]:
    """Digests of the training images of a run or hub folder, at this run's size; none where its data is another."""
    if is_hub_folder(place):
        hub = read_hub_config(place)
        name, split = hub["data"], hub["seen"]
    else:
        run = load_run(place)
        name, split = run.config.data, describe_seen(run)
    if name != config.data or split is None:
        return frozenset()
    parts = {key: split[key] for key in ("validation", "validation_seed")}
    return frozenset(digest_split(load_run_data(replace(config, **parts)).train))


def describe_seen(run: Run) -> dict[str, Any]:
    """What a hub folder says about the images that its model was trained on."""
    if seen_by_init(run):
        total = int(run.info.get("training_images", 0)) + len(run.data().validation)
        return {"images": total, "validation": 0.0, "validation_seed": run.config.validation_seed}
    return {
        "images": int(run.info.get("training_images", 0)),
        "validation": run.config.validation,
        "validation_seed": run.config.validation_seed,
    }


def _check_fits(model: Path, name: str, data: DataSet, classes: list[str], image_size: tuple[int, int]) -> None:
    """Raise a `UserError` if images have other classes or another size than a model takes."""
    if list(data.classes) != list(classes):
        raise UserError(
            f"{model} knows the classes {join_names(classes)}, but {name} has {join_names(data.classes)}: name data "
            "with the model's classes."
        )
    if data.image_size != image_size:
        wanted, found = ("x".join(map(str, size)) for size in (image_size, data.image_size))
        raise UserError(f"{model} takes images of {wanted} pixels, but those of {name} have {found}.")


def _leave_out(
    model: Path, name: str, data: DataSet, trained: frozenset[str], measured: frozenset[str]
) -> HeldOutImages:
    """The images but those with digests of images that a model was trained on, or is measured on."""
    parts = [data.train, data.validation, *([] if has_own_test_split(name) else [data.test])]
    pool = join_splits(parts)
    split = select_unseen(pool, trained | measured)
    if not len(split):
        tests = sum(digest in measured for digest in digest_split(pool))
        raise _only_known(model, name, len(pool), tests) if tests else _none_left(model, name, len(pool))
    return HeldOutImages(hide_folder_path(name), split, len(pool) - len(split))


def _only_known(model: Path, name: str, images: int, tests: int) -> UserError:
    others = f", and it was trained on the other {images - tests}" if tests < images else ""
    return UserError(
        f"{tests} of the {images} images of {hide_folder_path(name)} are test images of {model}, which are for "
        f"measuring{others}: calibrate it on other labeled images with its classes, `data=folder:PATH`."
    )


def _none_left(model: Path, name: str, images: int) -> UserError:
    return UserError(
        f"{model} was trained on all {images} training images of {hide_folder_path(name)}, and its test images are for "
        "measuring: calibrate it on other labeled images with its classes, `data=folder:PATH`, or train with "
        "validation 0.1."
    )
