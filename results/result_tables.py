"""Tables of results that scripts in this folder write into pages."""

import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, pstdev

from dign import Results
from dign.core.files import write_text
from dign.report.analysis.claims import CLAIMS, UNMEASURED, claims_table, select_variants
from dign.report.analysis.study import make_study
from dign.report.load import load_runs

END = "<!-- end -->"
NOTHING = "–"
CLAIMS_HEAD = ("claim", "verdict", "p", "here", "the paper")


@dataclass(frozen=True)
class Column:
    """A number of a run, and which is the best: `max` or `min`."""

    head: str
    read: Callable[[Results], float | None]
    best: Callable[[Iterable[float]], float]


def _noise_ece(results: Results) -> float | None:
    noise = results.calibration.noise
    return noise.ece if noise else None


def _noise_ece_as_trained(results: Results) -> float | None:
    """Without the model's temperature."""
    calibrator = results.calibrator
    noise = calibrator.calibration.noise if calibrator and calibrator.calibration else None
    return noise.ece if noise else None


CLEAN = Column("clean", lambda results: results.clean.accuracy, max)
NOISE = Column("under noise (mCA-N)", lambda results: results.mca_n, max)
ALL = Column("under all corruptions (mCA)", lambda results: results.mca, max)
C_BAR = Column("under others (C-bar)", lambda results: results.sets["c-bar"].accuracy, max)
NOISE_ECE = Column("calibration error under noise (ECE-N)", _noise_ece, min)
NOISE_ECE_AS_TRAINED = Column("ECE-N as trained", _noise_ece_as_trained, min)


def best_in_bold(columns: Sequence[Column], rows: Sequence[Sequence[Results]]) -> list[list[str]]:
    """The cells of each row, means over its runs, the best of each column in bold."""
    marked = [mark_best([cell(map(column.read, runs)) for runs in rows], column.best) for column in columns]
    return [list(texts) for texts in zip(*marked, strict=True)]


def cell(values: Iterable[float | None]) -> str:
    """Mean and standard deviation of what was measured."""
    present = [value for value in values if value is not None]
    if not present:
        return NOTHING
    return f"{fmean(present):.1f} ± {pstdev(present):.1f}" if len(present) > 1 else f"{present[0]:.1f}"


def mark_best(texts: Sequence[str], pick: Callable[[Iterable[float]], float]) -> list[str]:
    """The cells of a column, the best number in bold, and whatever prints the same."""
    numbers = {text: text.partition(" ")[0] for text in texts if text != NOTHING}
    best = pick(map(float, numbers.values())) if numbers else None
    return [
        text.replace(numbers[text], f"**{numbers[text]}**", 1)
        if text in numbers and float(numbers[text]) == best
        else text
        for text in texts
    ]


def format_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    first, *others = (f"| {' | '.join(line)} |\n" for line in (head, *rows))
    return first + "|---" * len(head) + "|\n" + "".join(others)


def decide_claims(runs: Sequence[Path]) -> str:
    """What these run folders of one network say about the paper's claims, verdicts and differences.

    Where a setting was varied, a table for each of its values. Each is corrected by itself, and so has its own chance
    of 5 % of a wrong verdict; `dign report` corrects for all values together.
    """
    study, tables = make_study(*load_runs(runs)), []
    (model,) = study.models
    for variant, groups in select_variants(CLAIMS, study.of_model(model)):
        (section,) = claims_table(make_study([run for group in groups for run in group.runs])).sections
        rows = [(row.label, *(each.text for each in row.cells)) for row in section.rows]
        rows = [row for row in rows if row[1] != UNMEASURED]
        columns = len(CLAIMS_HEAD) - all(row[-1] == NOTHING for row in rows)  # the paper has other networks
        table = format_table(CLAIMS_HEAD[:columns], (row[:columns] for row in rows))
        tables.append(f"{variant}:\n\n{table}" if variant else table)
    return "\n".join(tables)


def fill(page: Path, tables: Mapping[str, str]) -> None:
    """Write each table between its mark and the next end."""
    text = page.read_text(encoding="utf-8")
    for start, table in tables.items():
        before, found, rest = text.partition(start)
        _, ended, after = rest.partition(END)
        if not (found and ended):
            raise SystemExit(f"{page} has no {start.strip()} with an {END} behind it: where should the table go?")
        text = before + start + table + END + after
    write_text(page, text)


def report(folders: Iterable[Path], *options: str | Path) -> None:
    subprocess.run(["dign", "report", *folders, "--quiet", *options], check=True)
