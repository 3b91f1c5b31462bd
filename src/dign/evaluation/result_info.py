"""What a results file says about the model and about how it was measured, as dataclasses with checked readers."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

from dign.core.text import MAX_TEXT, clean_text
from dign.data.names import hide_folder_path
from dign.evaluation.json_values import as_object, fail, is_count, is_number, is_whole


@dataclass(frozen=True)
class RunInfo:
    """What was evaluated.

    Attributes:
        name: The run's folder, or a label.
        method: Key of the training method, "external" for a model that dign did not train.
        title: Name for tables.
        model: Architecture, or where the model came from.
        data: Data set.
        seed: Seed of the training.
        parameters: Number of trainable parameters; None where unknown.
        members: The names of an ensemble's members; None for a single model.
    """

    name: str
    method: str
    title: str
    model: str
    data: str
    seed: int = 0
    parameters: int | None = None
    members: tuple[str, ...] | None = None

    def to_json(self) -> dict[str, Any]:
        """The `run` entry of a results file."""
        value = asdict(self)
        members = value.pop("members")
        return {**value, "members": list(members)} if members else value

    @classmethod
    def from_json(cls, value: Any) -> RunInfo:
        run = as_object(value, "run")
        texts = {}
        for key in ("name", "method", "title", "model", "data"):
            texts[key] = clean_text(run[key]) if isinstance(run.get(key), str) else ""
            if not texts[key]:
                fail(f"run.{key} is missing or not a text")
        if not is_count(run.get("seed")):
            fail("run.seed is missing or not a whole number")
        texts["data"] = hide_folder_path(texts["data"])
        parameters, members = run.get("parameters"), run.get("members")
        if members is not None and not (isinstance(members, list) and all(isinstance(name, str) for name in members)):
            fail("run.members is not a list of names")
        return cls(
            **texts,
            seed=run["seed"],
            parameters=parameters if is_count(parameters) else None,
            members=tuple(map(clean_text, members)) if members else None,
        )


@dataclass(frozen=True)
class EvaluationInfo:
    """On what, how, where, when and by which code was measured; None where a file does not say, but for the precision.

    Attributes:
        split: Which images were measured.
        images: How many.
        image_size: Height and width.
        profile: Severity table of the corruptions.
        seed: Seed of the corruptions.
        benchmark: Folder of a stored benchmark; None where corruptions were made on the fly.
        jpeg_quality: Quality of the JPEG that corrupted images went through, as those of the published benchmarks of 64
            and 224 pixels did; None for no such step, and in files of older versions.
        frost: "photographs" or "procedural", where frost was among the corruptions.
        bins: Number of calibration bins.
        device: "cpu" or the name of a GPU.
        precision: "32", or "bf16" or "16" where the network computed in mixed precision.
        commit: Commit of the code.
        time: When, in ISO 8601.
        seconds: How long it took.
        versions: Package to version.
        left_out: Images that were left out because the model was trained on them; None for its own data set.
        skipped: Images that were left out because they cannot be read.
        images_sha256: Digest of the images and labels.
        limit: The largest number of images that was asked for; None for all of the split.
        earlier: Where an evaluation was added to an earlier one under the same circumstances: which corruptions are
            from then, with its `time`, `commit` and `device`.
    """

    split: str | None = None
    images: int | None = None
    image_size: tuple[int, int] | None = None
    profile: str | None = None
    seed: int | None = None
    benchmark: str | None = None
    frost: str | None = None
    jpeg_quality: int | None = None
    bins: int | None = None
    device: str | None = None
    precision: str = "32"
    commit: str | None = None
    time: str | None = None
    seconds: float | None = None
    versions: dict[str, str] | None = None
    left_out: int | None = None
    skipped: int | None = None
    images_sha256: str | None = None
    limit: int | None = None
    earlier: tuple[dict[str, str], ...] | None = None

    @classmethod
    def from_json(cls, value: Any) -> EvaluationInfo:
        """Unknown keys are ignored, missing ones are as by default."""
        given = as_object(value, "evaluation")
        found: dict[str, Any] = {}
        for key in (spec.name for spec in fields(cls) if given.get(spec.name) is not None):
            found[key] = cls._read_entry(key, given[key])
            if found[key] is None:
                fail(f"evaluation.{key} is not what it should be")
        return cls(**found)

    def to_json(self) -> dict[str, Any]:
        value = {**asdict(self), "image_size": list(self.image_size) if self.image_size else None}
        value["earlier"] = list(self.earlier) if self.earlier else None
        value["precision"] = None if self.precision == "32" else self.precision  # as in files of older versions
        optional = ("device", "precision", "jpeg_quality", "left_out", "skipped", "images_sha256", "limit", "earlier")
        return {key: entry for key, entry in value.items() if entry is not None or key not in optional}

    @staticmethod
    def _read_entry(key: str, value: Any) -> Any:
        """The entry, or None where it has the wrong type."""
        if key in ("images", "jpeg_quality", "bins", "left_out", "skipped", "limit"):
            return value if is_count(value) else None
        if key == "seed":
            return value if is_whole(value) else None
        if key == "seconds":
            return value if is_number(value) else None
        if key == "image_size":
            sound = isinstance(value, list) and len(value) == 2 and all(map(is_count, value)) and all(value)
            return tuple(value) if sound else None
        if key == "versions":
            return _clean_texts(value) if isinstance(value, dict) else None
        if key == "earlier":
            sound = isinstance(value, list) and all(isinstance(part, dict) for part in value)
            return tuple(_clean_texts(part, LONGEST_LIST) for part in value) if sound else None
        return clean_text(value) if isinstance(value, str) else None


LONGEST_LIST = 4000
"""Letters of a list of corruptions: there are forty, of up to thirty letters."""


def _clean_texts(value: dict[str, Any], longest: int = MAX_TEXT) -> dict[str, str]:
    return {clean_text(name): clean_text(text, longest) for name, text in value.items()}
