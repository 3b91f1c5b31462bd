"""A run's certificates: rows that resume, and what they add up to."""

import json
from dataclasses import replace

import pytest
import torch
from torch import nn

from dign.certification.record import Plan, Row, Target, certify_run, certify_target, summarize
from dign.core.errors import UserError
from dign.core.sampling import spread_indices
from dign.runs.config import RunConfig
from dign.training.train import train

pytestmark = pytest.mark.slow
PLAN = Plan(sigma=0.1, n0=10, n=200, images=6)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    settings = {"data": "digits", "size": 8, "epochs": 1, "method": "consistency", "track": "none"}
    return train(RunConfig.from_mapping(settings), tmp_path_factory.mktemp("certify") / "run", quiet=True)


def test_every_image_has_a_row_and_the_file_says_what_was_done(run):
    result = certify_run(run, PLAN)
    assert [row["index"] for row in result["rows"]] == spread_indices(result["test_images"], 6)
    assert result == json.loads((run.path / "certificates-0.1.json").read_text())
    assert result["certified_accuracy"]["0"] >= max(result["certified_accuracy"].values())
    assert result["plan"]["n"] == 200 and result["run"]["method"] == "consistency"


def test_an_attack_stands_beside_the_certificate(run):
    result = certify_run(run, Plan(sigma=0.1, n0=10, n=200, images=4, attack=True))
    rows = [row for row in result["rows"] if row["attack"] is not None]
    assert all(row["correct"] and row["attack"] >= row["radius"] for row in rows)
    assert not rows or set(result["accuracy_under_attack"]) == set(result["certified_accuracy"])


def test_an_interrupted_command_resumes_and_other_settings_start_anew(run):
    record = run.path / "certificates-0.1.jsonl"
    whole = certify_run(run, PLAN)["rows"]
    lines = record.read_text().splitlines()
    record.write_text("\n".join([*lines[:4], lines[4][:10]]))  # killed while it wrote the fourth row
    counted = []
    resumed = certify_run(run, PLAN, progress=lambda done, total: counted.append(done))["rows"]
    assert counted == [4, 5, 6]
    assert [{**row, "seconds": 0} for row in resumed] == [{**row, "seconds": 0} for row in whole]
    counted.clear()
    certify_run(run, Plan(sigma=0.1, n0=10, n=300, images=6), progress=lambda done, total: counted.append(done))
    assert counted == [1, 2, 3, 4, 5, 6]


class Always(nn.Module):
    """Answers the same class whatever it sees."""

    def __init__(self, answer):
        super().__init__()
        self.bias = nn.Parameter(torch.eye(10)[answer])

    def forward(self, x):
        return self.bias.expand(len(x), -1)


def test_certificates_of_another_model_or_of_other_images_are_set_aside(run, tmp_path):
    split = run.data().test
    shifted = replace(split, labels=split.labels.roll(1))
    for model, images in ((Always(0), split), (Always(1), split), (Always(1), shifted)):
        result = certify_target(Target(model, images, {"name": "hub"}, tmp_path), PLAN)
        assert {row["answer"] for row in result["rows"]} == {int(model.bias.argmax())}
        assert [row["label"] for row in result["rows"]] == images.labels[spread_indices(len(images), 6)].tolist()
    first, second = (json.loads((tmp_path / f"earlier-certificates-0.1-{n}.json").read_text()) for n in (1, 2))
    assert {row["answer"] for row in first["rows"]} == {0} and {row["answer"] for row in second["rows"]} == {1}
    assert (tmp_path / "earlier-certificates-0.1-2.jsonl").is_file()


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"sigma": 0.0}, "`sigma` must be"), ({"n": 5}, "at least `n0`"), ({"radii": (0.9,)}, "certify at most 0.1")],
)
@pytest.mark.parametrize("early", [True, False])
def test_settings_that_make_no_sense_are_refused_before_anything_is_written(run, changes, message, early):
    before = sorted(run.path.iterdir())
    with pytest.raises(UserError, match=message):
        certify_run(run, replace(PLAN, early=early, **changes))
    assert sorted(run.path.iterdir()) == before


def test_the_summary_by_hand():
    rows = [Row(0, 1, 1, 0.5, True, 100, 1.0), Row(1, 2, 1, 0.9, False, 300, 1.0), Row(2, 0, -1, 0.0, False, 200, 1.0)]
    summary = summarize(rows, (0.25, 0.75))
    assert summary["certified_accuracy"] == {"0": pytest.approx(100 / 3), "0.25": pytest.approx(100 / 3), "0.75": 0.0}
    assert summary["average_certified_radius"] == pytest.approx(0.5 / 3)
    assert summary["abstained"] == pytest.approx(100 / 3) and summary["mean_draws"] == 200
