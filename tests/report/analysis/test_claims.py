"""The paper's claims are decided by the data."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from dign.evaluation.image_record import Answers, ImageRecord
from dign.report.analysis.claims import (
    CLAIMS,
    FAILS,
    PARTLY,
    PASSES,
    TOO_FEW,
    UNMEASURED,
    UNSURE,
    Claim,
    Decision,
    check_claim,
    check_claims,
    claims_table,
    p_cell,
    select_variants,
)
from dign.report.analysis.quantities import CLEAN_ACCURACY, MCA_N
from dign.report.analysis.significance import holm
from dign.report.analysis.study import Group, make_study
from dign.report.load import load_runs
from dign.report.make import study_of


def verdicts(study):
    return {row.label: row.cells[0].text for row in claims_table(study).rows}


def test_a_p_value_is_seen_on_its_side_of_the_level():
    assert [p_cell(p).text for p in (0.0497, 0.0503, 0.0488, 0.0004)] == ["0.0497", "0.0503", "0.049", "< 0.001"]


def test_with_one_seed_no_claim_is_decided(demo_runs):
    assert set(verdicts(make_study(*load_runs([demo_runs]))).values()) == {TOO_FEW, UNMEASURED}


def test_claims_are_decided_by_the_data_in_both_directions(fake_run, tmp_path):
    for seed in range(3):
        fake_run(tmp_path / f"s{seed}", "Standard", seed, images=2000)
        fake_run(tmp_path / f"d{seed}", "DiGN", seed, images=2000)
    text = "DiGN is more accurate under noise than Standard"
    study = make_study(*load_runs([tmp_path]))
    assert verdicts(study)[text] == PASSES
    reverse = Claim("", "Standard", ["DiGN"], [MCA_N])
    assert check_claim(reverse, study.groups).verdict == FAILS
    assert check_claim(Claim("", "DiGN", ["AugMix"], [MCA_N]), study.groups) == Decision(UNMEASURED, [])
    assert check_claim(Claim("", "DiGN", ["Standard"], [MCA_N, CLEAN_ACCURACY]), study.groups).verdict != PASSES


def test_a_claim_does_not_pass_where_some_of_its_methods_were_not_run_but_may_fail(fake_run, tmp_path):
    for seed in range(3):
        fake_run(tmp_path / f"s{seed}", "Standard", seed, images=2000)
        fake_run(tmp_path / f"d{seed}", "DiGN", seed, images=2000)
    study = make_study(*load_runs([tmp_path]))
    assert verdicts(study)["DiGN is more accurate under noise than every other method"] == PARTLY
    assert check_claim(Claim("", "Standard", ["DiGN", "AugMix"], [MCA_N]), study.groups).verdict == FAILS


def test_a_claim_about_many_methods_says_how_many_were_run(demo_runs):
    row = claims_table(make_study(*load_runs([demo_runs]))).rows[0]
    assert "only 3 of 8 other methods were run" in row.cells[2].text


@pytest.mark.slow
def test_the_paper_s_own_tables_are_quoted_beside_its_claims(grid_runs):
    rows = {row.label: row for row in claims_table(study_of([grid_runs])).rows}
    assert rows["DiGN is more accurate under noise than AugMix"].cells[3].text == "mCA-N +5.9 against AugMix"
    assert len(rows) == len(CLAIMS)


def group_of(title, *, clean, noise):
    """Runs that differ by their seed: values of two quantities for each."""
    values = [{CLEAN_ACCURACY.key: first, MCA_N.key: second} for first, second in zip(clean, noise, strict=True)]
    return Group(title, title, "m", tuple(SimpleNamespace(seed=seed, values=each) for seed, each in enumerate(values)))


def without_images(quantity):
    return replace(quantity, read=lambda run: run.values[quantity.key], images=None)


def test_a_claim_passes_by_the_largest_of_its_p_values_and_fails_by_the_smallest_against_it():
    """Differences over three seeds with t = 10 and t = 20, worked out by hand.

    With two degrees of freedom the two-sided p of t is 1 - t / sqrt(2 + t^2): 0.00985 and 0.00249.
    """
    base = group_of("b", clean=(0, 0, 0), noise=(0, 0, 0))
    spread = (-(3**0.5), 0, 3**0.5)  # a standard error of 1
    ten, twenty = [10 + each for each in spread], [20 + each for each in spread]
    quantities = [without_images(CLEAN_ACCURACY), without_images(MCA_N)]
    p_ten, p_twenty = 1 - 10 / 102**0.5, 1 - 20 / 402**0.5

    claim = Claim("", "a", ["b"], quantities)
    passing = check_claim(claim, [group_of("a", clean=ten, noise=twenty), base])
    assert (passing.verdict, passing.p) == (PASSES, pytest.approx(p_ten)), "both must hold: nothing to correct"
    failing = check_claim(claim, [group_of("a", clean=[-each for each in ten], noise=twenty), base])
    assert (failing.verdict, failing.p) == (FAILS, pytest.approx(2 * p_ten)), "one of two is enough: corrected"
    worse = check_claim(claim, [group_of("a", clean=[-each for each in ten], noise=[-each for each in twenty]), base])
    assert (worse.verdict, worse.p) == (FAILS, pytest.approx(2 * p_twenty))

    reverse = Claim("", "b", ["a"], quantities[1:])
    (pair,) = check_claims([claim, reverse], [[group_of("a", clean=ten, noise=ten), base]])
    assert [each.p for each in pair] == pytest.approx([2 * p_ten, 2 * p_ten]), "two claims: Holm"


def test_where_no_method_differs_any_verdict_at_all_comes_in_five_reports_of_a_hundred():
    """All methods draw from one distribution: 1000 reports of all claims, with three and with five seeds."""
    generator = np.random.default_rng(0)
    titles = {claim.winner for claim in CLAIMS} | {title for claim in CLAIMS for title in claim.losers}
    keys = {quantity.key for claim in CLAIMS for quantity in claim.quantities}
    claims = [
        replace(
            claim,
            quantities=[replace(q, read=lambda run, key=q.key: run.values[key], images=None) for q in claim.quantities],
        )
        for claim in CLAIMS
    ]
    for seeds in (3, 5):
        decided = 0
        for _ in range(500):
            groups = [
                Group(title, title, "m", tuple(
                    SimpleNamespace(seed=seed, values={key: generator.normal() for key in keys})
                    for seed in range(seeds)
                ))
                for title in titles
            ]  # fmt: skip
            decided += any(each.verdict in (PASSES, FAILS, PARTLY) for each in check_claims(claims, [groups])[0])
        assert decided <= 25 + 10, "5 % of 500, and two standard deviations"


NOISES = ("impulse_noise", "shot_noise", "speckle_noise")
ACCURACIES = {CLEAN_ACCURACY.key: [("clean", 0)], MCA_N.key: [(name, 1) for name in NOISES]}


def train_alike(generator, difficulty, seed):
    """A run of the one method that there is: skill differs from training to training, images are as hard for all."""
    skill = 1 + 0.3 * generator.normal()
    answers = {}
    for condition in [("clean", 0), *ACCURACIES[MCA_N.key]]:
        right = skill - difficulty - (condition[0] != "clean") + generator.logistic(size=len(difficulty)) > 0
        answers[condition] = Answers((~right).astype(np.uint16), np.full(len(difficulty), 60_000, np.uint16))
    record = ImageRecord(np.zeros(len(difficulty), np.uint16), answers)
    results = SimpleNamespace(
        images=record,
        evaluation=SimpleNamespace(images_sha256=None),
        corruptions={name: SimpleNamespace(severities={1: None}) for name in NOISES},
    )
    return SimpleNamespace(seed=seed, results=results)


def read_accuracy(run, key):
    return 100 * float(np.mean([run.results.images.correct(condition) for condition in ACCURACIES[key]]))


@pytest.mark.slow
@pytest.mark.parametrize(("seeds", "models"), [(1, 1), (3, 2)])
def test_luck_of_training_and_of_images_together_decides_at_most_five_reports_of_a_hundred(seeds, models):
    """Trainings that differ by their seed alone, on the same images, with metrics that go together.

    Over images alone, as with one seed, two such models differ significantly in most reports: that is true of them, but
    not of methods, and decides no claim.
    """
    generator = np.random.default_rng(0)
    quantities = [replace(q, read=lambda run, key=q.key: read_accuracy(run, key)) for q in (CLEAN_ACCURACY, MCA_N)]
    claims = [Claim("", "a", ["b", "c", "d"], quantities), Claim("", "d", ["b"], quantities)]
    decided = differing = 0
    for _ in range(100):
        difficulty = 2 * generator.normal(size=500)
        worlds = [
            [
                Group(name, name, "m", tuple(train_alike(generator, difficulty, seed) for seed in range(seeds)))
                for name in "abcd"
            ]
            for _ in range(models)
        ]
        decisions = [decision for world in check_claims(claims, worlds) for decision in world]
        decided += any(decision.verdict in (PASSES, FAILS, PARTLY) for decision in decisions)
        found = [each.difference.images.p for decision in decisions for each in decision.comparisons]
        differing += min(found) < 0.05 / len(found)
        assert seeds > 1 or {decision.verdict for decision in decisions} == {TOO_FEW}
    assert decided <= 5 + 5, "5 % of 100, and two standard deviations"
    assert differing > 50, "the models do differ"


def test_claims_are_decided_for_each_value_of_a_setting_that_was_varied(fake_run, tmp_path):
    """DiGN at two weights, beside methods that have none: two sections, corrected together, each difference once."""
    for seed in range(3):
        fake_run(tmp_path / f"s{seed}", "Standard", seed, images=2000)
        for weight, images in ((0.2, 2000), (1.0, 1000)):
            config = {"settings.dign.weight": weight}
            fake_run(tmp_path / f"d{weight}-{seed}", "DiGN", seed, images=images, config=config)
    study = make_study(*load_runs([tmp_path]))
    table = claims_table(study)
    assert [section.heading for section in table.sections] == ["weight 0.2", "weight 1.0"]
    text = "DiGN is more accurate under noise than Standard"
    of_text = [row for section in table.sections for row in section.rows if row.label == text]
    assert [row.cells[0].text for row in of_text] == [PASSES, PASSES]
    (_, light), (_, heavy) = select_variants(CLAIMS, study.groups)
    assert [group.label for group in light] == ["Standard", "DiGN (weight 0.2)"]
    claim = Claim("", "DiGN", ["Standard"], [MCA_N])
    plain = [check_claim(claim, groups).p for groups in (light, heavy)]
    both = [decisions[0] for decisions in check_claims([claim], [light, heavy, light])]
    assert [each.p for each in both] == pytest.approx([*holm(plain), holm(plain)[0]]), "the same question counts once"
    (alone,) = check_claim(claim, light).comparisons
    width = alone.difference.half_width
    assert f"[{alone.difference.mean - width:.1f}, {alone.difference.mean + width:.1f}]" in alone.evidence
    assert both[0].comparisons[0].evidence == alone.evidence, "each difference is shown alone"


WEIGHT, RATE = "settings.dign.weight", "lr"


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        (  # a hybrid that has only one of the values so far
            [("Standard", {}), ("DiGN", {WEIGHT: 0.2}), ("DiGN", {WEIGHT: 1.0}), ("DiGN+AugMix", {WEIGHT: 0.2})],
            {"weight 0.2": ["Standard", "DiGN", "DiGN+AugMix"], "weight 1.0": ["Standard", "DiGN"]},
        ),
        (  # each method varied in something else
            [("Standard", {RATE: 0.1}), ("Standard", {RATE: 0.2}), ("DiGN", {WEIGHT: 0.2}), ("DiGN", {WEIGHT: 1.0})],
            {"weight 0.2": ["Standard", "DiGN"], "weight 1.0": ["Standard", "DiGN"]},
        ),
        (  # a setting of the same name that is another one, and of which the winner says nothing
            [("AugMix", {"settings.augmix.weight": 1}), ("AugMix", {"settings.augmix.weight": 12}), ("DiGN", {})],
            {"": ["DiGN"]},
        ),
        ([("CutMix", {"settings.cutmix.alpha": 0.5}), ("CutMix", {"settings.cutmix.alpha": 1.0}), ("DiGN", {})],
         {"": ["DiGN"]}),
        ([("Standard", {}), ("AugMix", {})], {"": ["Standard", "AugMix"]}),
    ],
)  # fmt: skip
def test_methods_are_compared_at_the_same_value_of_a_setting_that_they_share(fake_run, tmp_path, runs, expected):
    for number, (title, config) in enumerate(runs):
        fake_run(tmp_path / str(number), title, config=config)
    selections = select_variants(CLAIMS, make_study(*load_runs([tmp_path])).groups)
    assert {text: [group.title for group in groups] for text, groups in selections} == expected


def test_a_difference_that_is_not_significant_is_undecided_not_too_few_seeds(fake_run, tmp_path):
    for seed in range(3):
        fake_run(tmp_path / f"s{seed}", "Standard", seed)
        fake_run(tmp_path / f"t{seed}", "Standard", seed + 10, run={"title": "AugMix", "seed": seed})
    study = make_study(*load_runs([tmp_path]))
    assert check_claim(Claim("", "AugMix", ["Standard"], [MCA_N]), study.groups).verdict == UNSURE
