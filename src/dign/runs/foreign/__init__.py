"""Models that dign did not train: files of other libraries, their architectures with weights, and Python entries."""

from dign.runs.foreign.model import ForeignModel
from dign.runs.foreign.opening import open_model

__all__ = ["ForeignModel", "open_model"]
