"""Methods that adapt themselves at the start of each epoch, such as FW-AT-Adapt: which one a step takes."""

from __future__ import annotations

import json
import math
from typing import Any

import torch
from torch import Tensor

from dign.methods.base import Method
from dign.methods.factory import make_method, settings_of
from dign.parallel.team import Team


class Adaptation:
    """The method of each step: as it probes in the first steps of an epoch, and as it has adapted itself after them.

    Args:
        method: The method that training begins with.
        batch_size: Images of a step, in all processes.
        steps_per_epoch: Steps of an epoch.
    """

    def __init__(self, method: Method, batch_size: int, steps_per_epoch: int) -> None:
        self.method = method
        self._steps_per_epoch = steps_per_epoch
        self._probe_steps = min(math.ceil(method.probe_images / batch_size), steps_per_epoch)
        self._measured: list[dict[str, Tensor]] = []

    @property
    def adapts(self) -> bool:
        return self._probe_steps > 0

    def method_at(self, step: int) -> Method:
        """The method of a step."""
        return self.method.probing() if step % self._steps_per_epoch < self._probe_steps else self.method

    def record(self, step: int, measured: dict[str, Tensor], team: Team) -> None:
        """Take note of what a step has measured, and adapt the method after the last step of a probe.

        The host waits for the device there, once in an epoch.
        """
        position = step % self._steps_per_epoch
        if position >= self._probe_steps:
            return
        self._measured.append(team.mean(measured))
        if position == self._probe_steps - 1:
            names = self._measured[0]
            means = {name: torch.stack([each[name] for each in self._measured]).mean().item() for name in names}
            self.method = self.method.adapted(means)
            self._measured = []

    def state(self) -> dict[str, Any]:
        """What a checkpoint has to hold: the method's settings, and what the probe has measured so far."""
        if not self.adapts:
            return {}
        measured = [{name: value.item() for name, value in each.items()} for each in self._measured]
        return {"adapted": json.dumps({"settings": settings_of(self.method), "measured": measured})}

    def restore(self, metadata: dict[str, str], device: torch.device) -> None:
        """Go on from a checkpoint.

        Raises:
            KeyError, ValueError, TypeError: The checkpoint has no valid state of an adaptation.
        """
        if not self.adapts:
            return
        state = json.loads(metadata["adapted"])
        self.method = make_method(self.method.key, state["settings"])
        self._measured = [
            {name: torch.tensor(float(value), device=device) for name, value in each.items()}
            for each in state["measured"]
        ]
