"""Training methods: each turns a model and a batch into a loss.

>>> from dign.methods import DiGN
>>> DiGN(sigma_max=0.2, weight=0.2, samples=3)  # doctest: +ELLIPSIS
DiGN(...)
"""

from dign.methods.base import Cost, Method, Outcome, Sum
from dign.methods.dign import DiGN
from dign.methods.dign_without_cr import DiGNWithoutCR
from dign.methods.rse import RSE
from dign.methods.standard import Standard

METHODS: dict[str, type[Method]] = {
    method.key: method for method in (Standard, RSE, DiGNWithoutCR, DiGN)
}

__all__ = ["METHODS", "Cost", "DiGN", "DiGNWithoutCR", "Method", "Outcome", "RSE", "Standard", "Sum"]
