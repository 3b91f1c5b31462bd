"""What a model that dign did not train loses under which corruption, and which training has helped there."""

from __future__ import annotations

from dign.evaluation.info import EXTERNAL
from dign.report.analysis.quantities import CLEAN_ACCURACY, corruption_accuracy, corruption_title, severity_accuracy
from dign.report.analysis.study import Group, Study
from dign.report.analysis.tables import Cell, Column, Row, Section, Table, number, signed, statistic_cell

METHODS = {"dign": "DiGN", "augmix": "AugMix", "dign+augmix": "DiGN+AugMix"}
GAINS = {
    "gaussian_noise": (36.5, 25.0, 34.9),
    "shot_noise": (27.8, 20.4, 26.5),
    "impulse_noise": (30.4, 19.7, 29.2),
    "speckle_noise": (25.1, 18.8, 23.9),
    "defocus_blur": (3.6, 7.9, 6.6),
    "glass_blur": (33.3, 24.3, 33.5),
    "motion_blur": (3.1, 8.3, 7.5),
    "zoom_blur": (6.4, 10.8, 10.6),
    "gaussian_blur": (7.3, 13.3, 12.3),
    "snow": (7.1, 5.5, 6.0),
    "frost": (7.8, 6.4, 7.7),
    "fog": (-8.9, 3.9, 0.3),
    "brightness": (-3.3, -2.0, -4.0),
    "spatter": (2.5, 3.2, 2.3),
    "contrast": (-7.7, 11.5, 8.0),
    "elastic_transform": (1.2, 3.5, 2.7),
    "pixelate": (9.5, 5.8, 8.7),
    "jpeg_compression": (4.1, 2.1, 2.8),
    "saturate": (-3.4, -1.2, -3.7),
}
"""Points that each of `METHODS` gained over Standard, three seeds of fastnet on CIFAR-10. They are those of
`results/laptop-cifar10`; a test compares them."""
MUCH = 5.0
"""Points from which on a loss counts for the advice."""


def loss_tables(study: Study) -> list[Table]:
    """For every model that dign did not train: accuracy lost by corruption, the largest loss first, and advice."""
    tables = []
    for group in study.groups:
        if group.runs[0].results.run.method == EXTERNAL and study.corruptions:
            table = _table(group, study)
            tables += [table] if table else []
    return tables


def _table(group: Group, study: Study) -> Table | None:
    clean, worst = group.mean(CLEAN_ACCURACY), max(study.severities)
    losses = {
        name: clean - mean
        for name in study.corruptions
        if clean is not None and (mean := group.mean(corruption_accuracy(name))) is not None
    }
    if not losses:
        return None
    rows = []
    for name in sorted(losses, key=lambda name: -losses[name]):
        title = corruption_title(name)
        cells = [
            statistic_cell(group.statistic(corruption_accuracy(name))),
            Cell(number(losses[name]), losses[name]),
            statistic_cell(group.statistic(severity_accuracy(worst, (name,), title))),
            *(Cell(signed(gain), gain) for gain in GAINS.get(name, ())),
        ]
        cells += [Cell()] * (3 + len(METHODS) - len(cells))
        rows.append(Row(title, tuple(cells)))
    columns = (
        Column("Accuracy", "Mean over severities, in percent."),
        Column("Lost", "Points below the clean accuracy."),
        Column(f"Severity {worst}", "Accuracy at the highest severity that was measured, in percent."),
        *(
            Column(f"{title} on CIFAR-10", f"Points that {title} gained over Standard there.")
            for title in METHODS.values()
        ),
    )
    title = f"What {group.label} loses, and what has helped"
    caption = f"Clean accuracy: {number(clean)} %. {_advise(losses)}"
    return Table(f"losses-{group.slot}", title, caption, "Corruption", columns, (Section(None, tuple(rows)),))


def _advise(losses: dict[str, float]) -> str:
    """Which training gained most on CIFAR-10 under the corruptions that cost this model much."""
    much = [name for name, loss in losses.items() if loss >= MUCH and name in GAINS]
    if not much:
        return f"No corruption costs {MUCH:g} points or more: there is little to gain."
    means = {key: sum(GAINS[name][i] for name in much) / len(much) for i, key in enumerate(METHODS)}
    ranked = sorted(means, key=lambda key: -means[key])
    gained = ", ".join(f"{METHODS[key]} {signed(means[key])}" for key in ranked)
    count = f"{len(much)} corruptions that cost" if len(much) > 1 else "corruption that costs"
    return (
        f"Under the {count} {MUCH:g} points or more, training gained on average, on CIFAR-10 (the last columns, "
        f"results/laptop-cifar10): {gained} points. Fine-tune the model with the first of them: dign train DATA "
        f"--model NAME --init WEIGHTS --method {ranked[0]}. What this model gains is known only once that is measured."
    )
