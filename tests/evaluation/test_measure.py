"""Work is counted the same to the last bit, however it is shared."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from threading import Barrier

import pytest
import torch

from dign.corruptions import corrupt
from dign.evaluation.conditions import Conditions
from dign.evaluation.measure import as_given, measure, plan_work, split_batches
from dign.evaluation.summarize import CLEAN
from dign.methods import RSE
from dign.metrics import apply_temperature
from dign.metrics.confusions import confusion
from dign.parallel.team import Team

READINGS = [partial(apply_temperature, temperature=0.3)]
CONDITIONS = Conditions(corruptions=("fog", "shot_noise"), severities=(1, 4), seed=3)


def work(split, size=32):
    return plan_work(split_batches(split, size), CONDITIONS, size, "cpu")


def test_every_batch_comes_clean_and_under_every_condition(split):
    parts = list(work(split))
    assert [(part.condition, part.first, len(part.labels)) for part in parts] == [
        (condition, first, count)
        for first, count in ((0, 32), (32, 32), (64, 26))
        for condition in (CLEAN, *CONDITIONS.pairs)
    ]
    whole = corrupt(split.images, "shot_noise", 4, seed=3)
    assert torch.equal(parts[9].make_images(), whole[32:64]), "an image's noise does not depend on its batch"
    assert torch.equal(parts[10].make_images(), split.images[64:])


@dataclass(frozen=True)
class Threads(Team):
    """A team of threads."""

    values: list = field(default_factory=list)
    barrier: Barrier = None

    def gather(self, value):
        self.values[self.rank] = value
        self.barrier.wait(timeout=60)
        found = list(self.values)
        self.barrier.wait(timeout=60)
        return found


@pytest.mark.parametrize("extra", [0, 1])
def test_several_processes_count_what_one_does(model, split, extra):
    predict = partial(RSE(sigma=0.3, ensemble=2).predict, model)
    alone = measure(predict, work(split), readings=[as_given, *READINGS[:extra]])
    assert len(alone.others) == extra
    assert list(alone.confusions) == list(alone.counts)
    values, barrier = [None] * 3, Barrier(3)

    def count(rank):
        team = Threads(rank, 3, values=values, barrier=barrier)
        return measure(predict, work(split), readings=[as_given, *READINGS[:extra]], team=team)

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(count, range(3))) == [alone] * 3


def test_a_temperature_leaves_what_is_right_as_it_is(model, split):
    measured = measure(lambda x, g: torch.softmax(model(x), 1), work(split), readings=[as_given, *READINGS])
    for condition, counts in measured.counts.items():
        assert counts.compute().accuracy == measured.others[0].counts[condition].compute().accuracy
        assert counts.compute().ece != measured.others[0].counts[condition].compute().ece


def test_confusion_is_counted_under_every_condition(model, split):
    measured = measure(lambda x, g: torch.softmax(model(x), 1), work(split))
    for condition, found in measured.confusions.items():
        images = split.images if condition == CLEAN else corrupt(split.images, *condition, seed=3)
        assert torch.equal(found.compute(), confusion(model(images.float() / 255), split.labels))
        assert 100 * int(found.compute().trace()) / 90 == pytest.approx(measured.counts[condition].compute().accuracy)


def test_confusion_of_very_many_classes_is_not_counted(split):
    measured = measure(lambda x, g: torch.full((len(x), 101), 1 / 101), work(split))
    assert measured.confusions == {} and measured.counts[CLEAN].count == 90
