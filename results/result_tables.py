"""Cells and rows of the tables that scripts in this folder write into pages."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean, pstdev

from dign import Results
from dign.core.files import write_text

END = "<!-- end -->"


def fill(file: Path, tables: Mapping[str, str]) -> None:
    """Write each table behind its mark."""
    text = file.read_text(encoding="utf-8")
    for start, made in tables.items():
        before, _, rest = text.partition(start)
        text = before + start + made + END + rest.partition(END)[2]
    write_text(file, text)


def format_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    first, *others = (f"| {' | '.join(line)} |\n" for line in (head, *rows))
    return first + "|---" * len(head) + "|\n" + "".join(others)


def cell(values: Iterable[float | None]) -> str:
    """Mean and standard deviation of what was measured."""
    present = [value for value in values if value is not None]
    if not present:
        return "–"
    return f"{fmean(present):.1f} ± {pstdev(present):.1f}" if len(present) > 1 else f"{present[0]:.1f}"


def mark_best(texts: Sequence[str], pick: Callable[[Iterable[float]], float]) -> list[str]:
    """The cells of a column, the best number in bold, and whatever prints the same."""
    numbers = [text.partition(" ")[0] for text in texts]
    best = pick(map(float, numbers))
    return [
        text.replace(number, f"**{number}**", 1) if float(number) == best else text
        for text, number in zip(texts, numbers, strict=True)
    ]


def noise_ece_as_trained(results: Results) -> float | None:
    """The calibration error under noise without the model's temperature."""
    calibrator = results.calibrator
    return calibrator.calibration.noise.ece if calibrator and calibrator.calibration else None
