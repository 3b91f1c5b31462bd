"""How fast a run will be, from a few real steps."""

import pytest

from dign.grid.evaluate_table import Evaluation
from dign.grid.measure import Extent, measure_speed, seconds_per_image


def test_time_per_image_is_found_with_growing_batches(monkeypatch):
    """On a clock that the action itself moves, so that the machine's load does not matter."""
    seen, now = [], [0.0]

    def act(images):
        seen.append(len(images))
        now[0] += 0.02 * len(images)

    monkeypatch.setattr("dign.grid.measure.time.perf_counter", lambda: now[0])
    assert seconds_per_image(act, lambda count: _Batch(count), 500) == pytest.approx(0.02)
    assert seen == [2, 2, 4, 8, 16]


def test_what_a_step_takes_whatever_its_images_is_spread_over_the_batch(monkeypatch):
    monkeypatch.setattr("dign.grid.measure._seconds", lambda action, images: 0.5 + 0.01 * len(images))
    assert seconds_per_image(lambda images: None, _Batch, 500) == pytest.approx(0.01 + 0.5 / 500)
    assert seconds_per_image(lambda images: None, _Batch, 2) == pytest.approx(0.01 + 0.5 / 2)


class _Batch:
    is_cuda = False

    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count


def test_a_real_measurement_gives_positive_times(small):
    (run,) = small(method="dign").runs
    speed = measure_speed(run.config, Extent(64, 64, (8, 8), 10), Evaluation(only=("shot_noise",)))
    assert min(speed.step, speed.predict, speed.corrupt) > 0
