"""The weights of the best validation so far, in files of the run's folder."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

from torch import nn

from dign.core.errors import UserError
from dign.core.files import read_json, write_json
from dign.runs.checkpoints import load_weights, save_weights

BEST_FILES = ("best.safetensors", "best.json")


class BestWeights:
    """What `keep=best` keeps.

    Args:
        folder: The run's folder.
        criterion: The score of a validation that it goes by, in percent.
    """

    def __init__(self, folder: Path, criterion: str) -> None:
        self.weights, self.facts = (folder / name for name in BEST_FILES)
        self.criterion = criterion

    def offer(self, model: nn.Module, scores: dict[str, float], **facts: Any) -> None:
        """Keep the weights if the scores of their validation are the best so far."""
        if scores[self.criterion] > self._score():
            save_weights(self.weights, model)
            write_json(self.facts, {**facts, **scores})

    def load(self, model: nn.Module) -> bool:
        """Load the best weights; False where there are none."""
        if not self.weights.exists():
            return False
        load_weights(self.weights, model)
        return True

    def _score(self) -> float:
        if not self.facts.exists():
            return -1.0
        with suppress(OSError, ValueError, KeyError, TypeError, OverflowError):
            score = float(read_json(self.facts)[self.criterion])
            if 0 <= score <= 100:
                return score
        raise UserError(f"{self.facts} is damaged: remove it, and the best weights from now on are kept.")
