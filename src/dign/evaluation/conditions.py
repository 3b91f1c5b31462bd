"""Under what to evaluate: corruptions and severities, made on the fly or read from a benchmark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from dign.core.errors import UserError, unknown_name
from dign.corruptions import ALL_NAMES, NAMES, SEVERITIES, corrupt, profile_for
from dign.corruptions.benchmark.read import Benchmark, open_benchmark
from dign.corruptions.sets import GROUPS, SETS
from dign.corruptions.settings import check_profile
from dign.corruptions.storage import Jpeg, check_jpeg, choose_quality
from dign.data import cache_root
from dign.data.cache import open_store
from dign.data.dataset import DataSet


@dataclass(frozen=True)
class Conditions:
    """Corruptions to make on the fly.

    Args:
        corruptions: Names from `dign.corruptions.ALL_NAMES`, by default the nineteen common ones;
            `dign.corruptions.SETS` has the names of other sets, as in `Conditions(SETS["c-bar"])`.
        severities: From 1 to 5.
        profile: The severity table: "cifar", "tiny-imagenet" or "imagenet", or what lies between two, "32-64" or
            "64-224"; None takes the one that fits the images.
        seed: Seed of the corruptions.
        jpeg: JPEG of this quality after the corruption. By default as the published benchmark of the profile is stored:
            quality 85 for "tiny-imagenet" and "imagenet", none for "cifar". None: without.

    Raises:
        UserError: A corruption, a severity, the profile or the quality does not exist.

    >>> Conditions(corruptions=("fog", "shot_noise"), severities=(3,)).pairs
    [('fog', 3), ('shot_noise', 3)]
    """

    corruptions: Sequence[str] = tuple(NAMES)
    severities: Sequence[int] = SEVERITIES
    profile: str | None = None
    seed: int = 0
    jpeg: Jpeg = "profile"

    def __post_init__(self) -> None:
        check_jpeg(self.jpeg)
        if isinstance(self.corruptions, str):
            raise UserError(f"corruptions must be a list of names, e.g. ['fog'], not '{self.corruptions}'.")
        if isinstance(self.severities, int):
            raise UserError(f"severities must be a list, e.g. [1, 3], not {self.severities}.")
        for name in self.corruptions:
            if name in GROUPS:
                kind, where = ("set", "SETS") if name in SETS else ("family", "FAMILIES")
                members = ", ".join(GROUPS[name])
                raise UserError(f"'{name}' is a {kind}: name its corruptions, {members} (dign.corruptions.{where}).")
            if name not in ALL_NAMES:
                raise unknown_name("corruption", name, ALL_NAMES)
        for severity in self.severities:
            if severity not in SEVERITIES:
                raise UserError(f"invalid severity {severity!r}: expected 1 to 5.")
        if self.profile is not None:
            check_profile(self.profile)
        for field in ("corruptions", "severities"):  # each once: sets that are joined may share corruptions
            object.__setattr__(self, field, tuple(dict.fromkeys(getattr(self, field))))

    def quality_for(self, height: int, width: int) -> int | None:
        """The quality of the JPEG step for images of this size; None for no such step."""
        return choose_quality(self.jpeg, self.profile or profile_for(height, width))

    def corrupt(self, images: Tensor, name: str, severity: int, first: int = 0) -> Tensor:
        """Corrupt images, of which the first is number `first` of its data set."""
        return corrupt(images, name, severity, profile=self.profile, seed=self.seed, first=first, jpeg=self.jpeg)

    @property
    def pairs(self) -> list[tuple[str, int]]:
        """Every corruption at every severity."""
        return [(name, severity) for name in self.corruptions for severity in self.severities]


def choose_corruptions(only: Iterable[str]) -> tuple[str, ...]:
    """The corruptions that families, sets and single names stand for; the nineteen common ones for nothing.

    >>> choose_corruptions(["noise", "fog"])
    ('gaussian_noise', 'shot_noise', 'impulse_noise', 'speckle_noise', 'fog')
    """
    names: list[str] = []
    for word in only:
        if word not in GROUPS and word not in ALL_NAMES:
            raise unknown_name("corruption, family or set", word, [*GROUPS, *ALL_NAMES])
        names += [name for name in GROUPS.get(word, (word,)) if name not in names]
    return tuple(names or NAMES)


def parse_severities(text: str) -> tuple[int, ...]:
    """'3', '1-5' or '1,3,5' as numbers from 1 to 5, in order.

    >>> parse_severities("1-3,5")
    (1, 2, 3, 5)
    """
    chosen: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        try:
            low, high = int(first), int(last or first)
        except ValueError:
            low = high = 0
        chosen |= set(range(max(low, 0), min(high, 6) + 1)) or {0}  # no more than tells what is outside
    if not chosen <= set(SEVERITIES):
        raise UserError(f"invalid severity '{text}': expected 1-5, e.g. 3, 1-5 or 1,3-5.")
    return tuple(sorted(chosen))


def benchmark_for(
    data: DataSet, folder: Path | str, only: Sequence[str] = (), severities: Sequence[int] | None = None
) -> Benchmark:
    """Open a benchmark folder that was made from the test images of `data`.

    Args:
        data: The data set with the clean images.
        folder: A folder in the layout of CIFAR-10-C or Tiny-ImageNet-C.
        only: Families, sets or names of corruptions; by default all that the folder holds.
        severities: By default all that the folder holds.

    Raises:
        UserError: The folder is not whole, or belongs to another data set.
    """
    classes: Sequence[str] = data.classes
    if data.name == "tiny-imagenet":
        store = open_store(cache_root() / "tiny-imagenet")
        assert store is not None  # the images came from it
        classes = store.info["wnids"]
    benchmark = open_benchmark(
        folder,
        names=choose_corruptions(only) if only else None,
        severities=severities,
        labels=data.test.labels,
        classes=classes,
    )
    first = next(iter(benchmark))
    size = tuple(first.images[:1].shape[-2:])
    if size != data.image_size:
        raise UserError(f"{folder} holds images of {size} pixels, but those of {data.name} have {data.image_size}.")
    return benchmark
