"""Data sets: every source gives uint8 images (N,3,H,W), labels, class names, and three splits.

>>> import dign.data
>>> digits = dign.data.load("digits", size=8)
>>> len(digits.train), len(digits.validation), len(digits.test), digits.image_size
(1293, 145, 359, (8, 8))

What needs torch is imported on first use: listing names stays instant.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dign.data.cache import cache_root
    from dign.data.dataset import DataSet, Source, Split
    from dign.data.framing import Framing
    from dign.data.loading import SOURCES, find_source, load
    from dign.data.sources.arrays import from_arrays

_LAZY = {
    "DataSet": "dataset",
    "Split": "dataset",
    "Source": "dataset",
    "Framing": "framing",
    "SOURCES": "loading",
    "load": "loading",
    "find_source": "loading",
    "cache_root": "cache",
    "from_arrays": "sources.arrays",
}

__all__ = ["DataSet", "Framing", "SOURCES", "Source", "Split", "cache_root", "find_source", "from_arrays", "load"]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)
