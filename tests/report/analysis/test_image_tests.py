"""Differences over images: McNemar against SciPy, the bootstrap against what is known, and nothing where nothing is."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from dign.evaluation.image_record import Answers, ImageRecord
from dign.metrics.calibration_bins import calibration
from dign.report.analysis.confidence_quantities import CALIBRATION, RAW, UNCERTAINTY
from dign.report.analysis.image_tests import ImageDifference, compare_images, keep_images, mcnemar
from dign.report.analysis.quantities import CLEAN_ACCURACY, MCA_N, ImageScore, Quantity
from dign.report.analysis.study import Group

CLEAN = ("clean", 0)


def run(correct, confidence, seed=0, digest=None, raw=None, calibrator=None):
    """A run whose images have these answers: class 0 is right. `raw` are confidences before its calibrator."""
    labels = np.zeros(len(correct), np.uint16)
    answers = np.where(correct, 0, 1).astype(np.uint16)
    levels = np.rint(np.asarray(confidence) * 65535).astype(np.uint16)
    before = None if raw is None else np.rint(np.asarray(raw) * 65535).astype(np.uint16)
    record = ImageRecord(labels, {CLEAN: Answers(answers, levels, before)})
    about = SimpleNamespace(images_sha256=digest)
    results = SimpleNamespace(images=record, evaluation=about, corruptions={}, calibrator=calibrator)
    return SimpleNamespace(seed=seed, results=results)


def group(*runs):
    return Group("x", "x", "m", runs)


def test_mcnemar_agrees_with_scipy_s_binomial_test():
    generator = np.random.default_rng(0)
    for n in (30, 400, 9000):
        a, b = generator.random(n) < 0.8, generator.random(n) < 0.75
        only = int((a & ~b).sum()), int((b & ~a).sum())
        exact = stats.binomtest(only[0], sum(only), 0.5).pvalue
        assert mcnemar(a, b) == pytest.approx(exact, rel=0.02, abs=1e-6)
    assert mcnemar(a, a) == 1


def test_two_runs_on_clean_images_are_compared_by_mcnemar():
    generator = np.random.default_rng(1)
    a, b = generator.random(500) < 0.9, generator.random(500) < 0.8
    found = compare_images(group(run(a, np.full(500, 0.8))), group(run(b, np.full(500, 0.8))), CLEAN_ACCURACY)
    assert found.mean == pytest.approx(100 * (a.mean() - b.mean())) and found.images == 500
    assert found.p == pytest.approx(mcnemar(a, b))
    assert found.error == pytest.approx(100 * (a.astype(float) - b).std(ddof=1) / np.sqrt(500))


def test_the_bootstrap_of_ece_is_centered_on_its_difference_and_finds_what_is_there():
    generator = np.random.default_rng(2)
    confidence = generator.uniform(0.5, 1, 2000)
    honest, boastful = generator.random(2000) < confidence, generator.random(2000) < confidence - 0.2
    ece = Quantity("e", "ECE", "", False, lambda run: None, images=ImageScore("ece", lambda run: [CLEAN]))
    groups = [group(run(right, confidence)) for right in (boastful, honest)]
    found = compare_images(*groups, ece)

    def plain(right):
        import torch

        p = torch.tensor(np.rint(confidence * 65535) / 65535)
        return calibration(torch.stack([p, 1 - p], 1), torch.where(torch.tensor(right), 0, 1)).ece

    assert found.mean == pytest.approx(plain(boastful) - plain(honest), abs=0.02)
    assert found.p < 1e-6 and 0.5 < found.error < 3
    assert compare_images(groups[0], groups[0], ece).p == 1


def test_images_that_all_differ_by_the_same_are_decided_by_the_sign_test():
    assert ImageDifference(100.0, 0.0, 5).p == stats.binomtest(5, 5).pvalue
    assert ImageDifference(0.0, 0.0, 5).p == 1


def test_other_images_and_missing_records_are_not_compared():
    right = np.ones(10, bool)
    a, b = run(right, np.full(10, 0.9), digest="a"), run(right, np.full(10, 0.9), digest="b")
    assert compare_images(group(a), group(b), CLEAN_ACCURACY) is None
    assert compare_images(group(a), group(a), MCA_N) is None, "no noise was measured"
    without = SimpleNamespace(seed=0, results=SimpleNamespace(images=None, corruptions={}))
    assert compare_images(group(a), group(without), CLEAN_ACCURACY) is None
    assert compare_images(group(a), group(run(right, np.full(10, 0.9), seed=1, digest="a")), CLEAN_ACCURACY) is not None


def test_records_are_needed_of_the_seeds_in_common_alone():
    kept, lacking = SimpleNamespace(images=object()), SimpleNamespace(images=None)
    runs = [SimpleNamespace(seed=0, results=kept), SimpleNamespace(seed=1, results=lacking)]
    first, second = SimpleNamespace(runs=runs), SimpleNamespace(runs=[SimpleNamespace(seed=0, results=kept)])
    quantity = Quantity("a", "Accuracy", "", True, lambda run: None, images=ImageScore("accuracy", lambda run: [CLEAN]))
    assert keep_images(first, second, quantity)
    assert not keep_images(first, SimpleNamespace(runs=runs[1:]), quantity)


def test_proper_scores_are_compared_image_by_image_where_they_are_kept():
    """The standard error of the mean difference, as in a paired z-test; no test where a record lacks them."""
    generator = np.random.default_rng(4)
    right = np.ones(400, bool)
    runs = [run(right, np.full(400, 0.9)) for _ in range(2)]
    values = [generator.exponential(size=(2, 400)).astype(np.float16) for _ in runs]
    for each, losses in zip(runs, values, strict=True):
        each.results.images.losses["clean"] = losses
    for row, score in enumerate(("nll", "brier")):
        found = compare_images(group(runs[0]), group(runs[1]), UNCERTAINTY["clean", score])
        gaps = values[0][row].astype(float) - values[1][row]
        assert found.mean == pytest.approx(gaps.mean()) and found.error == pytest.approx(stats.sem(gaps))
        assert found.exact is None and keep_images(group(runs[0]), group(runs[1]), UNCERTAINTY["clean", score])
        without = group(run(right, np.full(400, 0.9)))
        assert compare_images(group(runs[0]), without, UNCERTAINTY["clean", score]) is None
        assert not keep_images(group(runs[0]), without, UNCERTAINTY["clean", score])
    assert UNCERTAINTY["clean", "aurc"].images is None


def test_calibration_before_the_calibrator_is_compared_by_the_confidences_before_it():
    generator = np.random.default_rng(3)
    raw, other = generator.uniform(0.5, 1, 2000), generator.uniform(0.5, 1, 2000)
    right = generator.random(2000) < raw - 0.2
    calibrated, plain = run(right, other, raw=raw, calibrator=object()), run(right, raw)
    rival = group(run(right, np.full(2000, right.mean())))
    before = RAW["clean", "ece"]
    found, wanted = compare_images(group(calibrated), rival, before), compare_images(group(plain), rival, before)
    assert (found.mean, found.error) == (wanted.mean, wanted.error) and found.mean > 15
    assert compare_images(group(calibrated), rival, CALIBRATION["clean", "ece"]).mean != pytest.approx(found.mean)
    assert compare_images(group(run(right, other, calibrator=object())), rival, before) is None, "it does not tell"


def test_runs_under_different_conditions_are_not_compared():
    """One severity of fog each, but not the same: neither McNemar's test nor a mean would be of one thing."""

    def run_at(severity):
        made = run(np.array([True, False]), np.array([0.5, 0.5]))
        made.results.images.conditions["fog", severity] = made.results.images.conditions[CLEAN]
        made.severity = severity
        return made

    accuracy = ImageScore("accuracy", lambda run: [("fog", run.severity)])
    fog = Quantity("f", "fog", "", True, lambda run: None, images=accuracy)
    assert compare_images(group(run_at(3)), group(run_at(5)), fog) is None
    assert compare_images(group(run_at(3)), group(run_at(3)), fog).mean == 0
