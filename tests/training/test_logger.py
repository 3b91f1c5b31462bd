"""The progress bar of a run."""

import pytest

from dign.runs.config import RunConfig
from dign.training.cost import work_done
from dign.training.logger import TrainingLogger


def remaining_after(folder, seconds_per_step, steps, **changes):
    """The seconds left that the bar shows after that many of 100 steps, told of every tenth one."""
    logger = TrainingLogger(folder, total=100, first=0, images_per_step=1, title="a run", quiet=True, **changes)
    now = 0.0
    bar, (task,) = logger._progress, logger._progress.tasks
    bar.get_time = lambda: now
    for step in range(1, steps + 1):
        now += seconds_per_step(step)
        if step % 10 == 0:
            logger.trained(step, 0, 1.0, {}, 0.1)
    assert task.fields["steps"] == f"{steps}/100"
    return task.time_remaining


def test_time_left_reckons_that_later_steps_cost_more(tmp_path):
    config = RunConfig(data="digits", method="dign", settings={"dign": {"samples": 1, "start": 0.5}})
    seconds = {False: 1.0, True: 2.0}
    left = remaining_after(tmp_path, lambda step: seconds[step > 50], 40, work=lambda part: work_done(config, part))
    assert left == pytest.approx(10 * 1 + 50 * 2, abs=1)
    left = remaining_after(tmp_path, lambda step: seconds[step > 50], 80, work=lambda part: work_done(config, part))
    assert left == pytest.approx(20 * 2, abs=1)


def test_time_left_is_known_where_records_come_minutes_apart(tmp_path):
    assert remaining_after(tmp_path, lambda step: 12.0, 50) == pytest.approx(50 * 12, abs=1)


@pytest.mark.parametrize("fails_in", ["log", "close"])
def test_a_tracker_that_fails_is_left_and_training_goes_on(tmp_path, capsys, fails_in):
    calls = []

    class Flaky:
        def log(self, values, step):
            self._do("log", step)

        def close(self):
            self._do("close")

        def _do(self, *call):
            calls.append(call)
            if call[0] == fails_in:
                raise ConnectionError("The server is gone.\nAsk somebody.")

    with TrainingLogger(
        tmp_path, total=9, first=0, images_per_step=1, title="a run", quiet=False, tracker=Flaky()
    ) as logger:
        logger.trained(1, 0, 1.0, {}, 0.1)
        logger.trained(2, 0, 1.0, {}, 0.1)
    assert len((tmp_path / "metrics.jsonl").read_text().splitlines()) == 2
    assert calls == ([("log", 1)] if fails_in == "log" else [("log", 1), ("log", 2), ("close",)])
    assert "The tracker failed (The server is gone.): metrics.jsonl goes on alone." in capsys.readouterr().err
