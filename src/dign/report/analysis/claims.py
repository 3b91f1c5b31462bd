"""What the paper claims, as a checklist that the data decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dign.report.analysis.paper import published_mean
from dign.report.analysis.quantities import CALIBRATION, CLEAN_ACCURACY, MCA, MCA_N, Quantity
from dign.report.analysis.significance import Difference, compare
from dign.report.analysis.study import Group, Study
from dign.report.analysis.tables import Cell, Column, Row, Section, Table, signed

PASSES, FAILS, UNSURE, UNMEASURED = "passes", "fails", "too few seeds to say", "not measured"
PARTLY = "passes so far, not all measured"
EVERYBODY = ("Standard", "AT", "TRADES", "RSE", "DeepAugment", "AugMix", "AugMax", "DiGN w/o CR")


@dataclass(frozen=True)
class Claim:
    """`winner` is better than each of `losers` in each of `quantities`."""

    text: str
    winner: str
    losers: Sequence[str]
    quantities: Sequence[Quantity]


_NOISE_ERRORS = tuple(CALIBRATION["noise", score] for score in ("rmse", "ece", "oe"))

CLAIMS = (
    Claim("DiGN is more accurate under noise than every other method", "DiGN", EVERYBODY, [MCA_N]),
    Claim("DiGN is more accurate under noise than Standard", "DiGN", ["Standard"], [MCA_N]),
    Claim("DiGN is more accurate under noise than AugMix", "DiGN", ["AugMix"], [MCA_N]),
    Claim("Consistency regularization helps: DiGN is more accurate than DiGN w/o CR, clean and under noise", "DiGN",
          ["DiGN w/o CR"], [CLEAN_ACCURACY, MCA_N]),
    Claim("Consistency regularization helps: DiGN is better calibrated under noise than DiGN w/o CR", "DiGN",
          ["DiGN w/o CR"], _NOISE_ERRORS),
    Claim("DiGN is better calibrated under noise than Standard", "DiGN", ["Standard"], _NOISE_ERRORS),
    Claim("DiGN is better calibrated under noise than AugMix", "DiGN", ["AugMix"], _NOISE_ERRORS),
    Claim("DiGN is sharper under noise than Standard", "DiGN", ["Standard"], [CALIBRATION["noise", "sharpness"]]),
    Claim("DiGN+AugMix is more accurate than Standard, AugMix and DiGN, under noise and under all corruptions",
          "DiGN+AugMix", ["Standard", "AugMix", "DiGN"], [MCA_N, MCA]),
    Claim("DiGN+AugMix is better calibrated under all corruptions than AugMix", "DiGN+AugMix", ["AugMix"],
          [CALIBRATION["all", "rmse"]]),
)  # fmt: skip
"""From the sections on robustness, calibration and ablation of the paper."""


@dataclass(frozen=True)
class Comparison:
    loser: str
    quantity: Quantity
    difference: Difference

    @property
    def verdict(self) -> str:
        """Passes or fails only where the difference is significant; otherwise the seeds do not decide."""
        if not self.difference.decided:
            return UNSURE
        return PASSES if (self.difference.mean > 0) == self.quantity.higher_is_better else FAILS

    @property
    def evidence(self) -> str:
        d = self.difference
        certainty = d.p_text if d.p is not None else f"{d.seeds} seed{'' if d.seeds == 1 else 's'}"
        return f"{self.quantity.label} {signed(d.mean)} against {self.loser} ({certainty})"


def check_claim(claim: Claim, groups: Sequence[Group]) -> tuple[str, list[Comparison]]:
    """The verdict and what it rests on: one failure refutes; all must be measured and pass to confirm."""
    by_title = {group.label: group for group in groups}
    comparisons = []
    for title in claim.losers:
        for quantity in claim.quantities:
            sides = [by_title[t].statistic(quantity) if t in by_title else None for t in (claim.winner, title)]
            if None not in sides:
                comparisons.append(Comparison(title, quantity, compare(*sides)))
    verdicts = {comparison.verdict for comparison in comparisons}
    if not verdicts:
        return UNMEASURED, []
    if FAILS in verdicts:
        return FAILS, comparisons
    if UNSURE in verdicts:
        return UNSURE, comparisons
    complete = len(comparisons) == len(claim.losers) * len(claim.quantities)
    return (PASSES if complete else PARTLY), comparisons


def claims_table(study: Study) -> Table:
    sections = []
    for model in study.models:
        groups = study.of_model(model)
        rows = tuple(_row(claim, study.data, model, groups) for claim in CLAIMS)
        sections.append(Section(model if len(study.models) > 1 else None, rows))
    columns = tuple(Column(label, numeric=False) for label in ("Verdict", "What these runs say", "The paper's tables"))
    caption = (
        "A claim passes where every difference it speaks of is significant in its favor (paired t-test over at least "
        "three seeds, two-sided, 5 %), fails where one is significant against it; where some of its methods or "
        "corruptions were not run it can fail, but not pass. The paper's claims are about CIFAR-10, CIFAR-100 and "
        "Tiny-ImageNet."
    )
    return Table("claims", "The paper's claims", caption, "Claim", columns, tuple(sections), wide_labels=True)


def _row(claim: Claim, data: str, model: str, groups: Sequence[Group]) -> Row:
    verdict, comparisons = check_claim(claim, groups)
    evidence = "; ".join(comparison.evidence for comparison in comparisons)
    run = {comparison.loser for comparison in comparisons}
    if comparisons and len(run) < len(claim.losers):
        evidence = f"only {len(run)} of {len(claim.losers)} other methods were run: {evidence}"
    cells = (Cell(verdict), Cell(evidence or "–"), Cell(_published(claim, data, model)))
    return Row(claim.text, cells)


def _published(claim: Claim, data: str, model: str) -> str:
    """What the paper's own tables say to its claim, on this data set and model: the smallest margin of each metric."""
    parts = []
    for quantity in claim.quantities:
        own = published_mean(data, model, claim.winner, quantity)
        others = [(published_mean(data, model, title, quantity), title) for title in claim.losers]
        others = [(value, title) for value, title in others if value is not None]
        if own is None or not others:
            continue
        value, title = max(others) if quantity.higher_is_better else min(others)
        parts.append(f"{quantity.label} {signed(own - value)} against {title}")
    return "; ".join(parts) or "–"
