"""Differences between methods."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from dign.corruptions import SETS
from dign.evaluation.image_record import Answers, ImageRecord
from dign.evaluation.results import Results
from dign.report.analysis.comparisons import comparison_table, difference_table
from dign.report.analysis.image_tests import compare_images
from dign.report.analysis.quantities import CLEAN_ACCURACY, SET_MEANS
from dign.report.analysis.significance import Difference, compare, correct, count_pairs
from dign.report.analysis.study import Group, Statistic
from dign.report.make import study_of

RIVALS = Path(__file__).parents[3] / "results" / "rivals-cifar10"


def test_the_interval_of_the_best_holds_where_the_best_is_picked_by_the_data():
    """Six methods that do not differ, three seeds: the best against the second, corrected for 15 pairs."""
    generator = np.random.default_rng(0)
    wrong = 0
    for _ in range(400):
        found = [Statistic(dict(enumerate(generator.normal(size=3)))) for _ in range(6)]
        best, *_, last = sorted(found, key=lambda statistic: -statistic.mean)
        (difference,) = correct([compare(best, last)], 15)
        assert difference.decided == (abs(difference.mean) > difference.half_width), "p and interval agree"
        wrong += difference.decided
    assert wrong <= 20 + 9, "5 % of 400, and two standard deviations"


def test_corrections_by_hand():
    plain = [Difference(1.0, 3, p_seeds=p, seed_error=0.1) for p in (0.01, 0.02)]
    assert [d.p for d in correct(plain)] == [0.02, 0.02], "Holm"
    assert [d.p for d in correct(plain, 10)] == [0.1, 0.2]
    assert correct([None, plain[0]])[0] is None and correct([None, plain[0]])[1].p == 0.01


def test_differences_name_the_best_and_say_when_seeds_are_too_few(grid_runs, demo_runs):
    few = difference_table(study_of([demo_runs]))
    assert few.sections[0].heading.startswith("DiGN (") and len(few.rows) == 3
    assert all(cell.text.endswith("too few seeds") for row in few.rows for cell in row.cells)
    many = difference_table(study_of([grid_runs]))
    standard = many.rows[0].cells[1].text
    assert standard.startswith("+") and "[" in standard and "p " in standard


def test_all_models_of_a_table_are_corrected_together(fake_run, tmp_path):
    for seed in range(3):
        for title in ("Standard", "DiGN", "AugMix"):
            fake_run(tmp_path / f"{title}{seed}", title, seed)
            fake_run(tmp_path / f"other{title}{seed}", title, seed, run={"model": "resnet18"})
    one = difference_table(
        study_of([tmp_path / f"{title}{seed}" for title in ("Standard", "DiGN", "AugMix") for seed in range(3)])
    )
    two = difference_table(study_of([tmp_path]))
    assert len(two.sections) == 2
    plain, corrected = (interval(table.sections[0].rows[0].cells[1].text) for table in (one, two))
    assert corrected[1] - corrected[0] > plain[1] - plain[0]


def test_pairs_that_cannot_be_tested_do_not_count(fake_run, tmp_path):
    """Three methods with three seeds are three pairs; a fourth with one seed adds none."""
    for title, seeds in {"Standard": 3, "DiGN": 3, "AugMix": 3, "RSE": 1}.items():
        for seed in range(seeds):
            fake_run(tmp_path / f"{title}{seed}", title, seed)
    groups = study_of([tmp_path]).groups
    assert len(groups) == 4 and count_pairs(groups, CLEAN_ACCURACY) == 3


def interval(text):
    """(1.1, 5.3) of '+3.2 [1.1, 5.3], p = 0.012'."""
    return [float(word.replace("−", "-")) for word in text.split("[")[1].split("]")[0].split(",")]


def test_two_groups_are_compared_in_everything(fake_run, tmp_path):
    fake_run(tmp_path / "a", "Standard")
    fake_run(tmp_path / "b", "DiGN")
    table = comparison_table(study_of([tmp_path]))
    row = next(row for row in table.rows if row.label.startswith("mCA-N"))
    assert row.cells[2].value == pytest.approx(row.cells[1].value - row.cells[0].value)
    assert (row.cells[0].best, row.cells[1].best) == (False, True)
    assert comparison_table(study_of([tmp_path / "a"])) is None


def test_two_groups_are_compared_in_further_sets_and_as_they_were_trained(tmp_path):
    measured = {}
    for method in ("dign+augmix", "dign+hybridaugment"):
        results = Results.load(RIVALS / f"cifar10-fastnet-{method}-seed0.json")
        (tmp_path / method).mkdir()
        results.save(tmp_path / method / "results.json")
        measured[results.run.title] = results
    study = study_of([tmp_path])
    rows = {row.label: row for row in comparison_table(study).rows}
    for place, group in enumerate(study.groups):
        results = measured[group.label]
        assert rows["C-bar acc. ↑"].cells[place].value == pytest.approx(results.sets["c-bar"].accuracy)
        raw = rows["Corrupt ECE-N as trained ↓"].cells[place].value
        assert raw == pytest.approx(results.calibrator.calibration.noise.ece)
        assert raw > 3 > rows["Corrupt ECE-N ↓"].cells[place].value


def test_accuracy_under_a_further_set_is_compared_over_images():
    """From what each image got: three of four conditions right, or all."""
    (quantity,) = (each for each in SET_MEANS if each.key == "c-bar")
    pairs = [(name, severity) for name in SETS["c-bar"][:2] for severity in (1, 2)]

    def group(right):
        answers = {
            pair: Answers((~good).astype(np.uint16), np.full(50, 60_000, np.uint16)) for pair, good in right.items()
        }
        record = ImageRecord(np.zeros(50, np.uint16), answers)
        severities = {name: SimpleNamespace(severities=(1, 2)) for name, _ in pairs}
        about = SimpleNamespace(images_sha256=None)
        results = SimpleNamespace(images=record, corruptions=severities, calibrator=None, evaluation=about)
        return Group("x", "x", "m", (SimpleNamespace(seed=0, results=results),))

    always = dict.fromkeys(pairs, np.ones(50, bool))
    mostly = {**always, pairs[0]: np.arange(50) % 2 == 0}
    found = compare_images(group(always), group(mostly), quantity)
    assert found.mean == pytest.approx(12.5) and found.images == 50
