"""One run of a grid: done once, taken up where it was, told in one sentence when it fails."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import dign.training.train
from dign.core.errors import UserError
from dign.evaluation.conditions import Conditions
from dign.grid.evaluate_table import Evaluation
from dign.grid.job import BUSY, DONE, FAILED, INTERRUPTED, Job, conditions_of, pin_threads, run_job
from dign.grid.plan import PlannedRun
from dign.grid.scheduling import read_states
from dign.grid.state import Stage
from dign.report.load import find_run_folders, load_runs
from dign.runs.folder import load_run, lock_run


def job_of(plan, out, number=0):
    return Job.of(plan.runs[number], out, threads=1)


def stage(plan, out):
    return read_states(plan.runs, out)[plan.runs[0].name].stage


def assert_same_weights(a, b):
    first, second = (load_file(Path(path) / "model.safetensors") for path in (a, b))
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.slow
def test_a_run_ends_as_an_ordinary_evaluated_folder(undisturbed):
    plan, out, outcome = undisturbed
    assert outcome.state == DONE and outcome.error is None
    folder = out / plan.runs[0].name
    assert load_run(folder).finished
    results = json.loads((folder / "results.json").read_text())
    assert results["corruptions"].keys() == {"shot_noise"}
    assert outcome.summary.to_json() == results["summary"]
    assert find_run_folders(out) == [folder], "what the grid keeps beside it is not taken for a run"
    assert [run.name for run in load_runs([out])[0]] == [plan.runs[0].name]


def test_a_finished_run_is_never_run_again(undisturbed):
    plan, out, first = undisturbed
    files = [path for path in (out / plan.runs[0].name).iterdir() if path.is_file()]
    before = {path: path.stat().st_mtime_ns for path in files}
    again = run_job(job_of(plan, out))
    assert again.state == DONE and again.summary == first.summary
    assert {path: path.stat().st_mtime_ns for path in files} == before
    assert stage(plan, out) is Stage.DONE


def test_threads_are_recorded_and_kept_when_a_run_goes_on(undisturbed):
    plan, out, _ = undisturbed
    folder = out / plan.runs[0].name
    assert load_run(folder).info["machine"]["threads"] == 1
    assert pin_threads(folder, 2) == 1
    assert torch.get_num_threads() == 1
    assert pin_threads(folder / "nothing", 2) == 2


@pytest.mark.slow
def test_an_interrupted_run_goes_on_to_the_same_weights(undisturbed, tmp_path, interrupt_at_step):
    plan, out, first = undisturbed
    patched = interrupt_at_step(7)
    stopped = run_job(job_of(plan, tmp_path))
    assert stopped.state == INTERRUPTED and "step 7 of 20" in stopped.error
    assert stage(plan, tmp_path) is Stage.BEGUN
    patched.undo()
    assert run_job(job_of(plan, tmp_path)).summary == first.summary
    assert_same_weights(out / plan.runs[0].name, tmp_path / plan.runs[0].name)


def test_a_temperature_that_is_asked_for_is_fitted_and_shown_beside_the_others(undisturbed, small):
    plan, out, _ = undisturbed
    scaled = small(evaluate={"only": "shot_noise", "severity": 3, "temperature": True})
    assert stage(scaled, out) is Stage.TRAINED
    assert run_job(job_of(scaled, out)).state == DONE
    results = json.loads((out / plan.runs[0].name / "results.json").read_text())
    assert results["temperature"]["noise"].keys() >= results["summary"]["calibration"]["noise"].keys() - {"bins"}
    assert stage(scaled, out) is Stage.DONE and stage(plan, out) is Stage.DONE


def test_a_run_that_another_process_works_on_is_left_alone(undisturbed):
    plan, out, _ = undisturbed
    with lock_run(out / ".grid" / plan.runs[0].name):
        assert run_job(job_of(plan, out)).state == BUSY


def test_a_folder_that_was_only_begun_to_be_made_is_made_anew(undisturbed, tmp_path):
    plan, _, first = undisturbed
    folder = tmp_path / plan.runs[0].name
    folder.mkdir()
    (folder / "run.json").write_text("{}")
    (folder / ".config.toml.partial").write_text("da")
    assert run_job(job_of(plan, tmp_path)).summary == first.summary


def test_a_folder_with_things_of_a_person_is_not_written_over(small, tmp_path):
    plan = small()
    folder = tmp_path / plan.runs[0].name
    folder.mkdir()
    (folder / "precious.txt").write_text("mine")
    outcome = run_job(job_of(plan, tmp_path))
    assert outcome.state == FAILED and "exists already" in outcome.error
    assert (folder / "precious.txt").read_text() == "mine"


def test_a_failure_is_one_sentence_and_its_traceback_is_in_the_log(small, tmp_path, monkeypatch):
    def broken(*arguments, **options):
        raise RuntimeError("the moon\nis full")

    monkeypatch.setattr(dign.training.train, "train", broken)
    plan = small()
    outcome = run_job(job_of(plan, tmp_path))
    assert outcome.state == FAILED
    assert outcome.error == f"RuntimeError: the moon (details: {tmp_path / '.grid' / plan.runs[0].name / 'log.txt'})"
    assert "Traceback" in (tmp_path / ".grid" / plan.runs[0].name / "log.txt").read_text()


def test_a_job_survives_json(small):
    plan = small(method="augmix", settings={"augmix": {"operations": ["rotate"]}}, evaluate={"only": ["noise", "fog"]})
    job = job_of(plan, "runs")
    back = Job(**json.loads(json.dumps(job.__dict__))).run
    assert isinstance(back, PlannedRun)
    assert back.config == plan.runs[0].config and back.evaluation == plan.runs[0].evaluation


def test_every_condition_of_the_table_is_kept_when_a_run_is_measured():
    table = {"only": ["fog", "c-bar"], "severity": 2, "profile": "imagenet", "seed": 3, "jpeg": "none"}
    evaluation = Evaluation.from_mapping(table)
    wanted = Conditions(evaluation.corruptions, severities=(2,), profile="imagenet", seed=3, jpeg=None)
    assert conditions_of(None, evaluation) == wanted


@pytest.mark.slow
def test_a_run_is_measured_in_the_precision_that_the_table_names(undisturbed, small, monkeypatch):
    plan, out, _ = undisturbed
    mixed = small(evaluate={"only": "shot_noise", "severity": 3, "precision": "bf16"})
    assert stage(mixed, out) is Stage.TRAINED, "what was measured in float32 is not it"
    assert run_job(job_of(mixed, out)).state == DONE and stage(mixed, out) is Stage.DONE
    results = json.loads((out / plan.runs[0].name / "results.json").read_text())
    assert results["evaluation"]["precision"] == "bf16"


def test_a_device_that_lacks_the_precision_is_told_before_training(small, tmp_path, monkeypatch):
    def refuse(precision, device):
        raise UserError(f"no {precision} here")

    monkeypatch.setattr("dign.parallel.devices.check_precision", refuse)
    monkeypatch.setattr(dign.training.train, "train", lambda *given, **how: pytest.fail("it was trained"))
    plan = small(evaluate={"only": "shot_noise", "precision": "bf16"})
    outcome = run_job(job_of(plan, tmp_path))
    assert (outcome.state, outcome.error) == (FAILED, "no bf16 here")
