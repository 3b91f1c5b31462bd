"""Out of distribution: how well models tell known images from others, from what runs' folders hold."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dign.core.text import clean_text
from dign.metrics.detection import OUTLIER_SCORES
from dign.report.analysis.study import Study
from dign.report.analysis.tables import Column, Row, Section, Table, mark_best, runs_cell
from dign.report.load import Run


@dataclass(frozen=True)
class Told:
    """One number of an `ood-NAME.json`: by which score, against which images, AUROC and FPR95 in percent."""

    outliers: str
    score: str
    auroc: float
    fpr95: float


def read_told(run: Run) -> list[Told]:
    """What a run folder holds; entries that make no sense are left out."""
    found = []
    for content in run.outliers:
        for score in OUTLIER_SCORES:
            try:
                scores, others = content["scores"][score], int(content["others"])
                name = f"{clean_text(str(content['outliers']))} ({others} images)"
                one = Told(name, score, float(scores["auroc"]), float(scores["fpr95"]))
            except (KeyError, TypeError, ValueError, OverflowError):
                continue
            if all(0 <= number <= 100 for number in (one.auroc, one.fpr95)):
                found.append(one)
    return found


def outlier_table(study: Study) -> Table | None:
    """AUROC and FPR95 by score, a section for every kind of outlier; None where nothing was measured."""
    by_group = [(group, [one for run in group.runs for one in read_told(run)]) for group in study.groups]
    names = list(dict.fromkeys(one.outliers for _, found in by_group for one in found))
    if not names:
        return None
    columns = [
        column
        for score in OUTLIER_SCORES
        for column in (
            Column(f"AUROC, {score} ↑", "50 is chance; more is better"),
            Column(f"FPR95, {score} ↓", "outliers accepted with 95 % of the known images; less is better"),
        )
    ]
    sections = []
    for name in names:
        rows = []
        for group, found in by_group:
            here = [one for one in found if one.outliers == name]
            if here:
                by_score = [[one for one in here if one.score == score] for score in OUTLIER_SCORES]
                pairs = [([one.auroc for one in part], [one.fpr95 for one in part]) for part in by_score]
                rows.append(Row(group.label, tuple(runs_cell(each) for pair in pairs for each in pair), group.slot))
        sections.append(Section(name, _with_best(rows)))
    caption = (
        "Percent; best in bold. Test images against others that show none of the classes, told apart by a score of the "
        "model."
    )
    return Table("outliers", "Out of distribution", caption, "Method", tuple(columns), tuple(sections))


def _with_best(rows: list[Row]) -> tuple[Row, ...]:
    """The best of every column marked, AUROC and FPR95 in turn."""
    columns = zip(*(row.cells for row in rows), strict=True)
    marked = [mark_best(column, highest=index % 2 == 0) for index, column in enumerate(columns)]
    return tuple(replace(row, cells=cells) for row, cells in zip(rows, zip(*marked, strict=True), strict=True))
