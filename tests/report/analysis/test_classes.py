"""Confusion of a method: seeds added up, and the pairs that are confused most."""

from fake_runs import add_confusion

from dign.evaluation.confusion_result import ConfusionResult
from dign.report.analysis.classes import classes_of, most_confused, pool_matrices
from dign.report.make import study_of

CLASSES = ["cat", "dog", "owl"]


def test_seeds_are_added_up_where_they_have_the_same_worst_condition(fake_run, tmp_path):
    for seed, worst in enumerate([("shot_noise", 5), ("impulse_noise", 5), ("impulse_noise", 5)]):
        add_confusion(fake_run(tmp_path / str(seed), seed=seed), CLASSES, worst)
    (group,) = study_of([tmp_path]).groups
    clean, hardest = pool_matrices(group)
    assert (clean.seeds, hardest.seeds) == (3, 2)
    assert (clean.title, hardest.title) == ("Clean images", "Impulse Noise, severity 5")
    matrices = [run.results.confusion for run in group.runs]
    assert hardest.matrix.counts[0][1] == matrices[1][1].counts[0][1] + matrices[2][1].counts[0][1]
    mean = sum(run.results.clean.accuracy for run in group.runs) / 3
    assert abs(clean.accuracy - mean) < 1e-9


def test_runs_without_matrices_have_none_and_runs_with_other_classes_are_left_out(fake_run, tmp_path):
    fake_run(tmp_path / "0", seed=0)
    (group,) = study_of([tmp_path]).groups
    assert pool_matrices(group) == [] and classes_of(group) == ()
    add_confusion(fake_run(tmp_path / "1", seed=1), CLASSES)
    add_confusion(fake_run(tmp_path / "2", seed=2), ["cat", "dog", "eel"])
    (group,) = study_of([tmp_path]).groups
    assert classes_of(group) == tuple(CLASSES) and [matrix.seeds for matrix in pool_matrices(group)] == [1, 1]


def test_pairs_are_ordered_by_their_share_of_the_true_class():
    matrix = ConfusionResult("fog", 3, ((8, 2, 0), (0, 1, 1), (3, 0, 97)))
    pairs = most_confused(matrix, CLASSES, 2)
    assert [(pair.true, pair.predicted, pair.count, pair.share) for pair in pairs] == [
        ("dog", "owl", 1, 50.0), ("cat", "dog", 2, 20.0),
    ]  # fmt: skip
    assert len(most_confused(matrix, CLASSES, 20)) == 3
