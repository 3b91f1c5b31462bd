"""Other images for a run: its own folder moved or grown, another folder, another data set."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace

from dign.core.errors import UserError, join_names
from dign.data.bulk_decoding import UnreadableImages
from dign.data.dataset import DataSet
from dign.data.names import PICTURE_PREFIXES
from dign.data.sources.folder import has_own_test_split
from dign.runs.folder import Run, load_run_data
from dign.runs.seen_images import (
    SeenImages,
    digest_seen,
    read_calibration_images,
    read_seen,
    select_unseen,
    separate_seen,
)


@dataclass(frozen=True)
class RunData:
    """Images to evaluate a model on.

    Attributes:
        data: The images.
        left_out: How many were left out since it was trained, validated or calibrated on them; None where there was no
            reason to look for such.
        is_own: Whether they are the data set that a run was trained with.
    """

    data: DataSet
    left_out: int | None = None
    is_own: bool = True

    def describe_skipped(self) -> str | None:
        """What to say of images that cannot be read and were left out, if there are any."""
        count = len(self.data.skipped)
        return f"{count} images are left out, since they cannot be read." if count else None


def load_data_for(run: Run, name: str | None = None, *, skip_unreadable: bool = False) -> RunData:
    """Load images to evaluate a run on, sorted into the splits that the run had them in.

    Images that it was calibrated on are in none of them, unless these are its own validation images.

    Args:
        run: The run.
        name: A data set, or "folder:PATH"; by default the run's own. A folder is the run's own too if it holds the
            images that the run was trained on and no more, wherever it is.
        skip_unreadable: Leave out images of a folder that cannot be read.

    Raises:
        UserError: The classes or the size are not those of the run, all images have been trained or calibrated on, or
            it is not known which.
    """
    config = replace(run.config, skip_unreadable=run.config.skip_unreadable or skip_unreadable)
    if name is None or (name == config.data and not name.startswith(PICTURE_PREFIXES)):
        return _without_calibrated(run, _load_own(replace(run, config=config)))
    height, width = run.image_size
    is_folder = name.startswith(PICTURE_PREFIXES)
    config = replace(config, data=name, size=height if is_folder and height == width else config.size)
    if is_folder and "training_sha256" in run.info:
        with suppress(UserError):  # what is wrong with it is said below
            data = load_run_data(config)
            if list(data.classes) == run.classes and run.trained_on(data.train):
                return _without_calibrated(run, data)
    data = load_run_data(replace(config, validation=0.0))
    _check_fit(run, data)
    calibrated = read_calibration_images(run.path)
    sorted_data, left_out = separate_seen(data, _find_seen(run), calibrated, is_cut=not has_own_test_split(name))
    if not len(sorted_data.test) and left_out:
        raise UserError(
            f"{run.path} was trained, validated or calibrated on all {left_out} images of {name}: there is none left "
            "to measure, so name others."
        )
    return RunData(sorted_data, left_out, is_own=False)


def _without_calibrated(run: Run, data: DataSet) -> RunData:
    """A run's own data, without test images that it was calibrated on as a part of other data."""
    test = select_unseen(data.test, read_calibration_images(run.path))
    left_out = len(data.test) - len(test)
    return RunData(replace(data, test=test), left_out) if left_out else RunData(data)


def _load_own(run: Run) -> DataSet:
    try:
        return run.data()
    except UnreadableImages:
        raise
    except UserError as error:
        if not run.config.data.startswith(PICTURE_PREFIXES):
            raise
        hint = "If its images were moved, or others added to them, name their folder: `data=folder:PATH`."
        raise UserError(f"{error} {hint}") from error


def _check_fit(run: Run, data: DataSet) -> None:
    if list(data.classes) != run.classes:
        raise UserError(
            f"{run.path} knows the classes {join_names(run.classes)}, but {data.name} has {join_names(data.classes)}: "
            "name data with the run's classes."
        )
    if data.image_size != run.image_size:
        wanted, found = ("x".join(map(str, size)) for size in (run.image_size, data.image_size))
        raise UserError(f"{run.path} takes images of {wanted} pixels, but those of {data.name} have {found}.")


def _find_seen(run: Run) -> SeenImages:
    """The digests that are kept with the run, else those of its own data, if that is as it was."""
    seen = read_seen(run.path)
    if seen is not None:
        return seen
    try:
        return digest_seen(run.data())
    except UserError as error:
        raise UserError(
            f"{run.path} keeps no digests of its training images, and its own data cannot be read ({error}) to compute "
            "them, so images that it was trained on cannot be told from others: put its data back, or train a new run."
        ) from error
