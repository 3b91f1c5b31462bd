"""What results say about model and circumstances."""

import time
from functools import partial

import torch
from torch import nn

from dign.evaluation.conditions import Conditions
from dign.evaluation.info import count_predictions, describe_evaluation, describe_model
from dign.evaluation.result_info import RunInfo
from dign.methods import Standard
from dign.metrics import Calibration


def guess(images):
    return torch.full((len(images), 2), 0.5)


def test_any_model_has_a_name():
    assert describe_model(nn.Linear(3, 2), "mine") == RunInfo("mine", "external", "mine", "Linear", "custom", 0, 8)
    assert describe_model(guess).name == "guess" and describe_model(guess).parameters is None
    assert describe_model(partial(Standard().predict, nn.Linear(3, 2))).name == "partial"


def test_circumstances_are_those_of_the_evaluation():
    clean = Calibration(4)
    clean.update(torch.full((3, 2), 0.5), torch.tensor([0, 0, 1]))
    conditions = Conditions(corruptions=("fog",), seed=7)
    info = describe_evaluation("test", clean, (64, 64), conditions, torch.device("cpu"), time.monotonic())
    assert (info.images, info.bins, info.image_size, info.seed) == (3, 4, (64, 64), 7)
    assert (info.profile, info.frost, info.benchmark, info.device) == ("tiny-imagenet", None, None, "cpu")
    assert info.jpeg_quality == 85, "as the published files of this size"
    assert {"dign", "torch", "python"} <= info.versions.keys()


def test_predictions_are_counted_beforehand_where_the_images_are():
    assert count_predictions(Conditions(corruptions=("fog", "snow"), severities=(1, 2, 3)), 10) == 10 * 7
    assert count_predictions(Conditions(), None) is None
