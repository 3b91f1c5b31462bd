"""The paper's numbers against ours."""

import json

import pytest

from dign.report.analysis.confidence_quantities import CALIBRATION
from dign.report.analysis.paper import citation, paper_comparison, published, published_mean, published_rows
from dign.report.analysis.quantities import CLEAN_ACCURACY, MCA, MCA_N
from dign.report.analysis.study import make_study
from dign.report.load import load_runs


def test_published_numbers_spot_checked_against_the_paper():
    assert published_mean("cifar10", "resnet18", "DiGN", MCA_N) == 90.9
    assert published_mean("cifar100", "resnet18", "AugMix", CLEAN_ACCURACY) == 76.4
    assert published_mean("tiny-imagenet", "resnet18", "Standard", CALIBRATION["noise", "ece"]) == 25.7
    assert published_mean("cifar10", "wide_resnet18", "DiGN+AugMix", MCA) == 92.1
    assert published_mean("cifar100", "densenet121", "DiGN", CALIBRATION["all", "rmse"]) == 19.2
    assert "IJCNN" in citation()


def test_every_published_metric_is_one_that_we_measure():
    labels = {quantity.label for quantity in (CLEAN_ACCURACY, MCA_N, MCA, *CALIBRATION.values())}
    labels |= {"Gaussian Noise", "Impulse Noise", "Shot Noise", "Speckle Noise"}
    tables = published()
    for name in ("cifar10", "cifar100", "tiny-imagenet"):
        assert set(published_rows(name, "resnet18")) <= labels
    for models in tables["table3_architectures"].values():
        assert all(set(metrics) <= labels for metrics in models.values())


def test_the_difference_is_ours_minus_theirs(grid_runs):
    study = make_study(*load_runs([grid_runs]))
    table = paper_comparison(study)
    section = next(section for section in table.sections if section.heading.startswith("DiGN, "))
    row = next(row for row in section.rows if row.label == "mCA-N")
    assert row.cells[1].value == 90.9
    assert row.cells[2].value == pytest.approx(row.cells[0].value - 90.9)
    assert "Our epochs: 12" in table.caption and "on the fly" in table.caption


def test_nothing_is_compared_where_data_or_model_do_not_correspond(demo_runs, fake_run, tmp_path):
    assert paper_comparison(make_study(*load_runs([demo_runs]))) is None
    fake_run(tmp_path / "a", data="cifar10", model="fastnet")
    assert paper_comparison(make_study(*load_runs([tmp_path]))) is None


def test_means_over_other_corruptions_than_the_paper_s_are_not_compared(fake_run, tmp_path):
    fake_run(tmp_path / "a", data="cifar10", model="densenet121", families=("noise", "blur"))
    labels = [row.label for row in paper_comparison(make_study(*load_runs([tmp_path]))).rows]
    assert labels == ["Clean acc.", "mCA-N", "Clean RMSE", "Corrupt RMSE-N"]


def test_other_severities_or_images_than_the_paper_s_are_not_compared(fake_run, tmp_path):
    for name, split, severities in (("hard", "test", "5"), ("held-out", "validation", "12345")):
        fake_run(tmp_path / name, data="cifar10", model="resnet18")
        file = tmp_path / name / "results.json"
        results = json.loads(file.read_text())
        results["evaluation"]["split"] = split
        for corruption in results["corruptions"].values():
            corruption["severities"] = {key: corruption["severities"][key] for key in severities}
        file.write_text(json.dumps(results))
    rows = paper_comparison(make_study(*load_runs([tmp_path / "hard"]))).rows
    assert {row.label.split()[0] for row in rows} == {"Clean"}, "clean images know no severity"
    assert paper_comparison(make_study(*load_runs([tmp_path / "held-out"]))) is None


def test_corrupted_images_that_are_not_jpeg_are_not_set_beside_tiny_imagenet_c(fake_run, tmp_path):
    fake_run(tmp_path / "a", data="tiny-imagenet", model="resnet18")
    path = tmp_path / "a" / "results.json"
    table = paper_comparison(make_study(*load_runs([tmp_path])))
    assert all(row.label.startswith("Clean") for row in table.rows)
    assert "only what was measured on clean" in table.caption
    results = json.loads(path.read_text())
    results["evaluation"]["jpeg_quality"] = 85
    path.write_text(json.dumps(results))
    table = paper_comparison(make_study(*load_runs([tmp_path])))
    assert "Shot Noise" in [row.label for row in table.rows] and "not made from the validation" in table.caption
