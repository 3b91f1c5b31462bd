"""Counts batch by batch, and their sum in the order of the batches, wherever each of them was counted."""

from collections.abc import Sequence

from torch import Tensor

from dign.metrics.calibration import Calibration

Counts = list[Calibration]
"""Of the predictions as they are and, where a temperature is given, of those at that temperature."""

Condition = tuple[str, int]
"""A corruption and its severity."""


def counted(probabilities: Tensor, labels: Tensor, bins: int) -> Calibration:
    """The counts of one batch: probabilities (N,C) and class indices (N,)."""
    calibration = Calibration(bins)
    calibration.update(probabilities, labels)
    return calibration


def merged(batches: Sequence[Condition], parts: Sequence[dict[int, Counts]]) -> list[dict[Condition, Calibration]]:
    """The counts of every condition, once for each entry of `Counts`.

    `batches` says of which condition each batch is; `parts` are what each process counted, by the number of the batch.
    Sums are made in the order of the batches: they come out the same to the last bit, whoever counted what.
    """
    everything = {number: counts for part in parts for number, counts in part.items()}
    columns: list[dict[Condition, Calibration]] = [{} for _ in everything[0]]
    for number, condition in enumerate(batches):
        for column, counts in zip(columns, everything[number], strict=True):
            column.setdefault(condition, Calibration(counts.bins)).merge(counts)
    return columns
