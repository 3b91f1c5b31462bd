"""The state of a run, judged by its files."""

from dataclasses import replace

import pytest

from dign.core.errors import UserError
from dign.grid.job import DONE, FAILED, Job, run_job
from dign.grid.scheduling import read_states
from dign.grid.state import Stage


def job_of(plan, out, number=0):
    return Job.of(plan.runs[number], out, threads=1)


def stage(plan, out):
    return read_states(plan.runs, out)[plan.runs[0].name].stage


@pytest.mark.slow
def test_other_conditions_evaluate_again_without_training_again(undisturbed, small, tmp_path):
    plan, out, _ = undisturbed
    changed = small(evaluate={"only": "shot_noise", "severity": [3, 4]})
    assert stage(changed, out) is Stage.TRAINED
    other_seed = small(evaluate={"only": "shot_noise", "severity": 3, "seed": 1})
    assert stage(other_seed, out) is Stage.TRAINED
    weights = out / plan.runs[0].name / "model.safetensors"
    before = weights.stat().st_mtime_ns
    assert run_job(job_of(changed, out)).state == DONE
    assert stage(changed, out) is Stage.DONE and stage(plan, out) is Stage.TRAINED
    assert weights.stat().st_mtime_ns == before
    assert run_job(job_of(plan, out)).state == DONE


def test_a_folder_with_another_run_is_refused_before_anything_starts(undisturbed, small):
    _, out, _ = undisturbed
    with pytest.raises(UserError, match="holds a run with epochs 2, not 3: choose another `out`"):
        read_states(small(epochs=3).runs, out)
    assert run_job(job_of(small(epochs=3), out)).state == FAILED
    free = {"device": "cpu", "compile": True, "winograd": False, "checkpoint_seconds": 9}
    assert stage(small(**free), out) is Stage.DONE, "what does not change the outcome"


def test_a_number_of_epochs_that_follows_from_the_images_is_that_of_its_run(undisturbed, small):
    plan, out, _ = undisturbed
    config = replace(plan.runs[0].config, epochs=0)
    assert read_states([replace(plan.runs[0], config=config)], out)[plan.runs[0].name].stage is Stage.DONE
