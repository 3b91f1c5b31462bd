"""dign: image classifiers that keep their accuracy, and know when they are unsure, under unseen corruptions.

>>> import dign
>>> dign.methods.DiGN(sigma_max=0.1).samples
3

The modules in `__all__` are loaded when they are first asked for: `import dign` alone is instant.
"""

from importlib import import_module
from types import ModuleType

from dign.core.version import __version__ as __version__

__all__ = [
    "augment",
    "corruptions",
    "data",
    "evaluation",
    "landscape",
    "methods",
    "metrics",
    "models",
    "runs",
    "training",
]


def __getattr__(name: str) -> ModuleType:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
