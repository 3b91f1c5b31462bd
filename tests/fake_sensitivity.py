"""A sensitivity study whose summaries are made by hand."""

from dataclasses import replace

from dign.corruptions import SEVERITIES
from dign.evaluation.result_info import EvaluationInfo, RunInfo
from dign.evaluation.result_parts import Summary
from dign.evaluation.result_pools import PooledCalibration
from dign.evaluation.summarize import CLEAN, make_results
from dign.grid.plan import make_plan
from dign.grid.sensitivity import make_sensitivity
from dign.metrics import Calibration, CalibrationScores
from dign.metrics.aggregation import MCA_N_CORRUPTIONS

GRID = {
    "data": "cifar10",
    "seed": [0, 1],
    "settings": {"dign": {"sigma_max": [0.1, 0.2], "weight": [0.2, 1.0, 5.0]}},
}


NOISES = dict.fromkeys(MCA_N_CORRUPTIONS, SEVERITIES)


def summary(mca_n, clean=90.0, ece=4.0):
    scores = CalibrationScores(10, clean, ece, ece, ece, None)
    return Summary(clean, mca_n, mca_n, {"noise": mca_n}, PooledCalibration(scores, noise=scores), NOISES)


def results(run, summary):
    """Results with ten predictions under every condition, of which nine are right, and any summary."""
    calibration = Calibration.from_state({"counts": [10], "correct": [9], "deviation": [0.0], "square": [0.0]})
    counts = {CLEAN: calibration}
    counts |= {(name, severity): calibration for name in run.evaluation.corruptions for severity in range(1, 6)}
    about = RunInfo(run.name, "dign", "DiGN", "resnet18", "cifar10", run.config.seed)
    how = EvaluationInfo("test", 10, (32, 32), "cifar", 0, bins=1)
    return replace(make_results(counts, about, how, ["a", "b"]), summary=summary)


def accuracy(run):
    """80 at sigma_max 0.1, 90 at 0.2, less 1 for each weight above 0.2, plus or minus 1 for the seed."""
    settings = run.config.settings["dign"]
    base = 80 if settings["sigma_max"] == 0.1 else 90
    return base - [0.2, 1.0, 5.0].index(settings["weight"]) + (1 if run.config.seed else -1)


def make_study():
    plan = make_plan(GRID)
    return make_sensitivity("cifar10, resnet18, dign", [(run, summary(accuracy(run))) for run in plan.runs])
