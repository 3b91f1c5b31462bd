"""The `[evaluate]` table of a grid file: how every run is measured once it is trained."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from dign.core.checks import check_value, coerce
from dign.core.errors import UserError, unknown_name
from dign.corruptions.benchmark.read import check_contains, find_names, find_severities
from dign.corruptions.settings import PROFILE_NAMES, profile_for
from dign.corruptions.storage import Jpeg, check_jpeg, choose_quality, parse_jpeg
from dign.evaluation.conditions import choose_corruptions, parse_severities
from dign.evaluation.result_info import EvaluationInfo
from dign.evaluation.results import Results
from dign.runs.config import PRECISIONS

SPLITS = ("test", "validation", "train")


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """The options of `dign evaluate`, checked."""

    only: tuple[str, ...] = ()
    severity: tuple[int, ...] = (1, 2, 3, 4, 5)
    profile: str | None = None
    jpeg: Jpeg = "profile"
    benchmark: str | None = None
    split: str = "test"
    seed: int = 0
    batch_size: int = 500
    precision: str = "32"
    temperature: bool = False
    images: int | None = None

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> Evaluation:
        """From a TOML table: `only` may be one name, `severity` 3, "1-5" or [1, 3, 5]."""
        known = [spec.name for spec in fields(cls)]
        for key in values:
            if key not in known:
                raise unknown_name("key in [evaluate]", key, known)
        given = dict(values)
        only = given.get("only", [])
        if not isinstance(only, str | list):
            raise UserError(f"only must be a name or a list of names, not {only!r}.")
        given["only"] = (only,) if isinstance(only, str) else coerce(only, tuple[str, ...], "only")
        if "severity" in given:
            given["severity"] = _severities(given["severity"])
        if "jpeg" in given:
            given["jpeg"] = parse_jpeg(given["jpeg"])
        if given.get("benchmark") is not None:
            given["benchmark"] = str(Path(coerce(given["benchmark"], str, "benchmark")).expanduser().resolve())
            if "severity" not in given:
                with suppress(UserError):  # told by `check_benchmark`, if there is anything left to measure
                    given["severity"] = find_severities(given["benchmark"])
        return cls(**given)

    def __post_init__(self) -> None:
        choose_corruptions(self.only)
        kinds: dict[str, Any] = {
            "profile": str | None,
            "split": str,
            "seed": int,
            "batch_size": int,
            "precision": str,
            "temperature": bool,
            "images": int | None,
        }
        for name, kind in kinds.items():
            object.__setattr__(self, name, coerce(getattr(self, name), kind, name))
        check_value("split", self.split, SPLITS, None)
        check_value("precision", self.precision, PRECISIONS, None)
        if self.profile is not None:
            check_value("profile", self.profile, PROFILE_NAMES, None)
        check_jpeg(self.jpeg)
        check_value("seed", self.seed, None, 0)
        check_value("batch_size", self.batch_size, None, 1)
        if self.images is not None:
            check_value("images", self.images, None, 1)
        if self.benchmark and self.split != "test":
            raise UserError("benchmark holds corrupted test images: drop split, or drop benchmark.")
        if self.benchmark and (self.profile or self.seed or self.images or self.jpeg != "profile"):
            raise UserError("benchmark holds images that are made already: drop profile, seed, images and jpeg.")
        if self.temperature and self.split == "validation":
            raise UserError("The temperature is fitted on the validation split: evaluate another one, or drop it.")

    @property
    def corruptions(self) -> tuple[str, ...]:
        return choose_corruptions(self.only)

    def check_benchmark(self) -> None:
        """Whether the benchmark's folder holds what is wanted, as far as can be seen before there is a model."""
        if self.benchmark:
            check_contains(self.benchmark, self.corruptions if self.only else None, self.severity)

    def describes(self, results: Results) -> bool:
        """Whether results were made under these conditions."""
        how = results.evaluation
        found = {name: set(corruption.severities) for name, corruption in results.corruptions.items()}
        benchmark = Path(self.benchmark).name if self.benchmark else None
        if how.split != self.split or how.benchmark != benchmark or how.precision != self.precision:
            return False
        if (self.temperature and not results.temperature) or how.limit != self.images:
            return False
        if benchmark is None and (how.seed, how.profile) != (self.seed, self._profile_of(how)):
            return False
        if benchmark is None and how.profile and how.jpeg_quality != choose_quality(self.jpeg, how.profile):
            return False
        wanted = self.corruptions
        if self.benchmark and not self.only:
            try:
                wanted = find_names(self.benchmark)
            except UserError:  # the folder is gone: whatever was measured then was what it contained
                wanted = tuple(found)
        return bool(found) and found == {name: set(self.severity) for name in wanted}

    def _profile_of(self, how: EvaluationInfo) -> str | None:
        """The severity table for the images of a results file."""
        return self.profile or (profile_for(*how.image_size) if how.image_size else how.profile)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def _severities(value: Any) -> tuple[int, ...]:
    words = value if isinstance(value, list | tuple) else [value]
    if any(isinstance(word, bool) or not isinstance(word, int | str) for word in words):
        raise UserError(f'severity must be 3, "1-5" or [1, 3, 5], not {value!r}.')
    return parse_severities(",".join(map(str, words)))
