"""The nineteen common corruptions and further sets: batched, seeded, and faithful to the published benchmarks.

Names, families and settings cost nothing to import; torch is loaded only when `corrupt` is first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dign.corruptions.sets import ALL_NAMES, SETS, family_of
from dign.corruptions.settings import FAMILIES, NAMES, PROFILES, SEVERITIES, profile_for
from dign.corruptions.storage import STORED_QUALITY

if TYPE_CHECKING:
    from dign.corruptions.benchmark.read import open_benchmark
    from dign.corruptions.benchmark.write import write_benchmark
    from dign.corruptions.engine import corrupt
    from dign.corruptions.frost import frost_source
    from dign.corruptions.transforms import Corrupt, RandomCorruption

_LAZY = {
    "Corrupt": "transforms",
    "RandomCorruption": "transforms",
    "corrupt": "engine",
    "frost_source": "frost",
    "open_benchmark": "benchmark.read",
    "write_benchmark": "benchmark.write",
}

__all__ = [
    "ALL_NAMES",
    "Corrupt",
    "FAMILIES",
    "NAMES",
    "PROFILES",
    "RandomCorruption",
    "SETS",
    "SEVERITIES",
    "STORED_QUALITY",
    "corrupt",
    "family_of",
    "frost_source",
    "open_benchmark",
    "profile_for",
    "write_benchmark",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)
