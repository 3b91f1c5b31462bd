"""What the paper claims, as a checklist that the data decides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from dign.report.analysis.comparisons import interval_text
from dign.report.analysis.confidence_quantities import RAW, UNCERTAINTY
from dign.report.analysis.paper import published_mean
from dign.report.analysis.quantities import CLEAN_ACCURACY, MCA, MCA_N, Quantity
from dign.report.analysis.significance import LEVEL, TEST, Difference, compare_groups, holm
from dign.report.analysis.study import RUN, Group, Study
from dign.report.analysis.tables import NOTHING, Cell, Column, Row, Section, Table, signed

PASSES, FAILS, UNSURE, UNMEASURED = "passes", "fails", "undecided", "not measured"
TOO_FEW = "too few seeds to say"
PARTLY = "passes so far, not all measured"
EVERYBODY = ("Standard", "AT", "TRADES", "RSE", "DeepAugment", "AugMix", "AugMax", "DiGN w/o CR")


@dataclass(frozen=True)
class Claim:
    """`winner` is better than each of `losers` in each of `quantities`."""

    text: str
    winner: str
    losers: Sequence[str]
    quantities: Sequence[Quantity]


_NOISE_ERRORS = tuple(RAW["noise", score] for score in ("rmse", "ece", "oe"))


def _with_calibrator(plain: Quantity) -> Quantity:
    """The same quantity of models that have a calibrator alone."""
    return replace(plain, read=lambda run: plain.read(run) if run.results.calibrator else None)


_WITH_TEMPERATURE = tuple(_with_calibrator(UNCERTAINTY["noise", score]) for score in ("debiased_rmse", "nll", "brier"))

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
    Claim("DiGN is sharper under noise than Standard", "DiGN", ["Standard"], [RAW["noise", "sharpness"]]),
    Claim("DiGN+AugMix is more accurate than Standard, AugMix and DiGN, under noise and under all corruptions",
          "DiGN+AugMix", ["Standard", "AugMix", "DiGN"], [MCA_N, MCA]),
    Claim("DiGN+AugMix is better calibrated under all corruptions than AugMix", "DiGN+AugMix", ["AugMix"],
          [RAW["all", "rmse"]]),
    Claim("With each model's own temperature: DiGN is better than DiGN w/o CR under noise in debiased calibration "
          "error, log loss and Brier score", "DiGN", ["DiGN w/o CR"], _WITH_TEMPERATURE),
)  # fmt: skip
"""From the sections on robustness, calibration and ablation of the paper; the last is ours."""


@dataclass(frozen=True)
class Comparison:
    loser: str
    quantity: Quantity
    difference: Difference

    @property
    def tested(self) -> bool:
        """Over seeds: a claim is about methods, not about the networks that happened to be trained."""
        return self.difference.p_seeds is not None

    @property
    def p(self) -> float:
        assert self.difference.p is not None
        return self.difference.p

    @property
    def favorable(self) -> bool:
        return (self.difference.mean > 0) == self.quantity.higher_is_better

    @property
    def evidence(self) -> str:
        d, decimals = self.difference, self.quantity.decimals
        change = f"{self.quantity.label} {signed(d.mean, decimals)}"
        if not self.tested:
            return f"{change} against {self.loser} ({d.seeds} seed{'' if d.seeds == 1 else 's'} in common)"
        interval = interval_text(d, decimals)
        if interval:
            change = f"{change} {interval}"
        return f"{change} against {self.loser} ({d.p_text})"


@dataclass(frozen=True)
class Decision:
    """What the runs say to a claim, and the comparisons it rests on."""

    verdict: str
    comparisons: Sequence[Comparison] = ()
    p: float | None = None
    """Corrected for all claims that are decided together; None: nothing could be tested."""


def check_claims(claims: Sequence[Claim], selections: Sequence[Sequence[Group]]) -> list[list[Decision]]:
    """For each selection of groups, one of a title, the decisions on all claims.

    The claims are what is decided, so it is their p-values (`_p_value`) that are corrected together (Holm): where no
    method differs from another, the chance that any claim passes or fails is at most 5 %. A claim that compares the
    same groups in several selections counts once; one without three seeds decides nothing, and does not count.
    """
    found: Differences = {}
    compared = [
        [_compare(claim, {group.title: group for group in groups}, found) for claim in claims] for groups in selections
    ]
    questions = {_question(place, each): _p_value(each) for row in compared for place, each in enumerate(row)}
    corrected = dict(zip(questions, holm(list(questions.values())), strict=True))
    return [
        [_decide(claims[place], each, corrected[_question(place, each)]) for place, each in enumerate(row)]
        for row in compared
    ]


def check_claim(claim: Claim, groups: Sequence[Group]) -> Decision:
    """The decision on one claim alone."""
    return check_claims([claim], [groups])[0][0]


Differences = dict[tuple[int, int, str], Difference | None]
"""By the groups of winner and loser (their `id`) and quantity."""


def _compare(claim: Claim, groups: Mapping[str, Group], found: Differences) -> list[Comparison]:
    """What a claim compares, as far as the methods were run. New differences are added to `found`."""
    comparisons = []
    if claim.winner not in groups:
        return []
    winner = groups[claim.winner]
    for loser in (groups[title] for title in claim.losers if title in groups):
        for quantity in claim.quantities:
            key = (id(winner), id(loser), quantity.key)
            if key not in found:
                found[key] = compare_groups(winner, loser, quantity)
            difference = found[key]
            if difference is not None:
                comparisons.append(Comparison(loser.title, quantity, difference))
    return comparisons


def _question(place: int, comparisons: Sequence[Comparison]) -> tuple[int, ...]:
    return (place, *(id(each.difference) for each in comparisons))


def _p_value(comparisons: Sequence[Comparison]) -> float | None:
    """The p-value of a claim: how surely it passes, where all its differences are in its favor, or else fails.

    To pass, all differences must be significant, each at the full level: the largest p-value counts, uncorrected (an
    intersection-union test). To fail, one against the claim is enough: the smallest of these, times the number of
    comparisons (Bonferroni). Without any true difference each happens with half the level's chance at most.
    """
    tested = [each for each in comparisons if each.tested]
    if not tested:
        return None
    if all(each.favorable for each in tested):
        return max(each.p for each in tested)
    return min(1.0, len(tested) * min(each.p for each in tested if not each.favorable))


def _decide(claim: Claim, comparisons: Sequence[Comparison], p: float | None) -> Decision:
    complete = len(comparisons) == len(claim.losers) * len(claim.quantities)
    if not comparisons:
        verdict = UNMEASURED
    elif p is None:
        verdict = TOO_FEW
    elif p >= LEVEL:
        verdict = UNSURE
    elif not all(each.favorable for each in comparisons if each.tested):
        verdict = FAILS
    elif not all(each.tested for each in comparisons):
        verdict = TOO_FEW
    else:
        verdict = PASSES if complete else PARTLY
    return Decision(verdict, comparisons, p)


def select_variants(claims: Sequence[Claim], groups: Sequence[Group]) -> list[tuple[str, list[Group]]]:
    """The groups of one model as the claims compare them, one of a title, for each setting of the methods they praise.

    Beside a method whose weight was varied stand those that have the same weight, or no such setting. Of a method that
    has several groups like that none is taken: which one should it be compared with?
    """
    winners = {claim.winner for claim in claims}
    titles = winners.union(*(claim.losers for claim in claims))
    named = [group for group in groups if group.title in titles and RUN not in dict(group.settings)]
    keys = list(dict.fromkeys(key for group in named for key in group.keys))
    variants = list(dict.fromkeys(_place(group, keys) for group in named if group.title in winners)) or [()]
    selections = []
    for variant in variants:
        agreeing = [group for group in named if _agrees(group, variant)]
        count = Counter(group.title for group in agreeing)
        shown = [f"{key.split('.')[-1]} {value}" for key, value in variant if _differs(key, variants)]
        selections.append((", ".join(shown), [group for group in agreeing if count[group.title] == 1]))
    return selections


Variant = tuple[tuple[str, str], ...]
"""Keys of a configuration and their values, as text."""


def _place(group: Group, keys: Sequence[str]) -> Variant:
    config = group.runs[0].config
    return tuple((key, str(config[key])) for key in keys if key in config)


def _agrees(group: Group, variant: Variant) -> bool:
    config = group.runs[0].config
    return all(str(config.get(key, value)) == value for key, value in variant)


def _differs(key: str, variants: Sequence[Variant]) -> bool:
    return len({dict(variant).get(key) for variant in variants}) > 1


def claims_table(study: Study) -> Table:
    sections = []
    selections = [
        (model, variant, groups)
        for model in study.models
        for variant, groups in select_variants(CLAIMS, study.of_model(model))
    ]
    found = check_claims(CLAIMS, [groups for _, _, groups in selections])
    for (model, variant, _), decisions in zip(selections, found, strict=True):
        rows = tuple(_row(claim, each, study.data, model) for claim, each in zip(CLAIMS, decisions, strict=True))
        heading = [model, variant] if len(study.models) > 1 else [variant]
        sections.append(Section(", ".join(filter(None, heading)) or None, rows))
    columns = (
        Column("Verdict", numeric=False),
        Column("p"),
        Column("What these runs say", numeric=False),
        Column("The paper's tables", numeric=False),
    )
    caption = (
        f"A claim passes where every difference it speaks of is significant in its favor, and fails where one is "
        f"significant against it. In brackets, each difference taken alone: its 95 % interval and its p-value. {TEST} "
        "The column p is the claim's own: the largest of its p-values where all differences are in its favor, "
        "otherwise the smallest of those against it, times the number of its comparisons; then corrected for all "
        "claims of the table (Holm), so that where no method differs any verdict at all has a chance of at most 5 %. "
        "Where a setting of DiGN or its hybrid was varied, the claims are decided for each of its values. Fewer than "
        "three seeds decide no claim: it is about "
        "methods, not about two trained models. Where some of its methods or corruptions were not run "
        "a claim can fail, but not pass. Calibration is that of the models without the temperature that dign gives "
        "them, as in the paper; the last claim is with it. The paper's claims are about CIFAR-10, CIFAR-100 and "
        "Tiny-ImageNet."
    )
    return Table("claims", "The paper's claims", caption, "Claim", columns, tuple(sections), wide_labels=True)


def _row(claim: Claim, decision: Decision, data: str, model: str) -> Row:
    evidence = "; ".join(each.evidence for each in decision.comparisons)
    run = {each.loser for each in decision.comparisons}
    if run and len(run) < len(claim.losers):
        evidence = f"only {len(run)} of {len(claim.losers)} other methods were run: {evidence}"
    cells = (
        Cell(decision.verdict),
        p_cell(decision.p),
        Cell(evidence or NOTHING),
        Cell(_published(claim, data, model)),
    )
    return Row(claim.text, cells)


def p_cell(p: float | None) -> Cell:
    """A claim's p-value, with as many digits as it takes to see on which side of the level it is."""
    if p is None:
        return Cell()
    decimals = 4 if round(p, 3) == LEVEL else 3
    return Cell("< 0.001" if p < 0.001 else f"{p:.{decimals}f}", value=p, decimals=decimals)


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
    return "; ".join(parts) or NOTHING
