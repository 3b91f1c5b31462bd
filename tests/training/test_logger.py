"""The progress bar of a run."""

import json

import pytest

from dign.runs.config import RunConfig
from dign.training.cost import work_curve
from dign.training.logger import TrainingLogger, describe_status, fit_status, flatten_record


def remaining_after(folder, seconds_per_step, steps, **changes):
    """The seconds left that the bar shows after that many of 100 steps, told of every tenth one."""
    logger = TrainingLogger(
        folder, total=100, first=0, epochs=10, images_per_step=1, title="a run", quiet=True, **changes
    )
    now = 0.0
    bar, (task,) = logger._progress, logger._progress.tasks
    bar.get_time = lambda: now
    for step in range(1, steps + 1):
        now += seconds_per_step(step)
        if step % 10 == 0:
            logger.advance(step)
    return task.time_remaining


def test_the_time_left_counts_later_steps_that_cost_more(tmp_path):
    config = RunConfig(data="digits", method="dign", settings={"dign": {"samples": 1, "start": 0.5}})
    seconds = {False: 1.0, True: 2.0}
    left = remaining_after(tmp_path, lambda step: seconds[step > 50], 40, work=work_curve(config))
    assert left == pytest.approx(10 * 1 + 50 * 2, abs=1)
    left = remaining_after(tmp_path, lambda step: seconds[step > 50], 80, work=work_curve(config))
    assert left == pytest.approx(20 * 2, abs=1)


def test_the_time_left_is_known_where_steps_take_long(tmp_path):
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
        tmp_path, total=9, first=0, epochs=10, images_per_step=1, title="a run", quiet=False, tracker=Flaky()
    ) as logger:
        logger.log_step(1, 0, 1.0, {}, 0.1)
        logger.log_step(2, 0, 1.0, {}, 0.1)
    assert len((tmp_path / "metrics.jsonl").read_text().splitlines()) == 2
    assert calls == ([("log", 1)] if fails_in == "log" else [("log", 1), ("log", 2), ("close",)])
    said = capsys.readouterr().err
    assert "The tracker failed (The server is gone.): only metrics.jsonl is written from here." in said


def test_numbers_of_training_and_validation_are_kept_apart():
    trained = {"step": 20, "epoch": 1, "loss": 0.5, "terms": {"consistency": 0.1}, "lr": 0.05, "images_per_second": 9.0}
    assert flatten_record(trained) == {"loss": 0.5, "consistency": 0.1, "lr": 0.05, "images_per_second": 9.0}
    validated = {"step": 20, "epoch": 1, "validation": {"accuracy": 90.0, "loss": 0.4}}
    assert flatten_record(validated) == {"validation/accuracy": 90.0, "validation/loss": 0.4}


def show_bar(folder, width, steps, **changes):
    """The line that a terminal of this width shows after these steps of 100, at two seconds each."""
    logger = TrainingLogger(
        folder, total=100, first=0, epochs=10, images_per_step=64, title="DiGN resnet18", quiet=True, **changes
    )
    now = 0.0
    logger._progress.get_time = lambda: now
    (task,) = logger._progress.tasks
    task._get_time, task.start_time = logger._progress.get_time, 0.0
    for step in range(1, steps + 1):
        now += 2.0
        logger.advance(step)
        if step % 20 == 0:
            logger.log_step(step, step // 10, 0.51234, {"cross_entropy": 0.5, "consistency": 0.01234}, 0.1)
            logger.log_validation(step, step // 10, {"accuracy": 91.27, "loss": 0.4})
    task.fields["speed"] = 1234.0
    return fit_status(describe_status(task), width)


def test_the_time_left_is_known_after_two_steps(tmp_path):
    assert show_bar(tmp_path, 100, 1).endswith("estimating")
    assert show_bar(tmp_path, 100, 2) == "DiGN resnet18  epoch 1/10  1234 images/s  3:16 left"


def test_a_wide_terminal_shows_everything_and_a_narrow_one_the_most_important(tmp_path):
    parts = "DiGN resnet18  epoch 5/10  loss 0.512  (cross_entropy 0.500, consistency 0.012)  val 91.3 %"
    assert show_bar(tmp_path, 200, 40) == f"{parts}  1234 images/s  2:00 left"
    assert show_bar(tmp_path, 76, 40) == "DiGN resnet18  epoch 5/10  loss 0.512  val 91.3 %  1234 images/s  2:00 left"
    assert show_bar(tmp_path, 42, 40) == "epoch 5/10  loss 0.512  2:00 left"
    assert show_bar(tmp_path, 12, 40) == "2:00 left"


def test_the_end_shows_the_last_epoch_and_the_time_it_took(tmp_path):
    assert show_bar(tmp_path, 48, 100) == "epoch 10/10  loss 0.512  val 91.3 %  in 3:20"


def test_a_resumed_run_starts_its_bar_where_it_was(tmp_path):
    records = [
        {"step": 50, "epoch": 5, "validation": {"accuracy": 80.0, "loss": 1.0}},
        {"step": 60, "epoch": 6, "validation": {"accuracy": 99.0, "loss": 0.1}},
    ]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    logger = TrainingLogger(tmp_path, total=100, first=50, epochs=10, images_per_step=1, title="run", quiet=True)
    (task,) = logger._progress.tasks
    assert task.completed == 0.5 and task.fields["epoch"] == "6/10"
    assert task.fields["validation"] == 80.0, "what came after the checkpoint is forgotten"
    assert len((tmp_path / "metrics.jsonl").read_text().splitlines()) == 1


def test_messages_are_translated(tmp_path, capsys):
    with TrainingLogger(
        tmp_path, total=1, first=0, epochs=1, images_per_step=1, title="", quiet=False, translate=str.upper
    ) as logger:
        logger.log_message("a smaller [lr]")
    assert capsys.readouterr().err == "A SMALLER [LR]\n"
