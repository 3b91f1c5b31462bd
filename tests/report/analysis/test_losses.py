"""What a foreign model loses: the numbers are its own, the advice follows from measured gains."""

from pathlib import Path
from statistics import mean

import pytest

from dign.evaluation.results import Results
from dign.report.analysis.losses import GAINS, METHODS, _advise, loss_tables
from dign.report.make import study_of

MEASURED = Path(__file__).parents[3] / "results" / "laptop-cifar10"


def test_the_gains_are_those_of_the_results():
    def accuracy(method, corruption):
        files = [MEASURED / f"cifar10-fastnet-{method}-seed{seed}.json" for seed in range(3)]
        return mean(results[file].corruptions[corruption].accuracy for file in files)

    results = {file: Results.load(file) for file in MEASURED.glob("*.json")}
    for corruption, gains in GAINS.items():
        before = accuracy("standard", corruption)
        assert [accuracy(method, corruption) - before for method in METHODS] == pytest.approx(gains, abs=0.051)


@pytest.fixture
def foreign(fake_run, tmp_path):
    """A model that dign did not train, under all corruptions."""
    import json

    fake_run(tmp_path / "mine", "Standard", families=("noise", "weather"))
    (tmp_path / "mine" / "config.toml").unlink(missing_ok=True)
    file = tmp_path / "mine" / "results.json"
    document = json.loads(file.read_text())
    document["run"] |= {"method": "external", "title": "mine", "name": "mine"}
    file.write_text(json.dumps(document))
    return tmp_path / "mine"


def test_a_foreign_model_gets_a_table_sorted_by_loss(foreign):
    study = study_of([foreign])
    (table,) = loss_tables(study)
    results = Results.load(foreign)
    lost = [row.cells[1].value for row in table.rows]
    assert lost == sorted(lost, reverse=True) and len(lost) == len(results.corruptions)
    shot = next(row for row in table.rows if row.label == "Shot Noise")
    assert shot.cells[1].value == pytest.approx(results.clean.accuracy - results.corruptions["shot_noise"].accuracy)
    assert [cell.value for cell in shot.cells[3:]] == list(GAINS["shot_noise"])
    assert table.title == "What mine loses, and what has helped"


def test_runs_of_dign_get_none(demo_runs):
    assert loss_tables(study_of([demo_runs])) == []


def test_the_advice_is_the_method_with_the_largest_mean_gain():
    assert "DiGN +36.5, DiGN+AugMix +34.9, AugMix +25.0 points" in _advise({"gaussian_noise": 40.0, "fog": 1.0})
    assert "--method augmix." in _advise({"fog": 12.0, "contrast": 30.0})
    assert "there is little to gain" in _advise({"fog": 1.0})
