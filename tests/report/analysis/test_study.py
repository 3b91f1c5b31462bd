"""Grouping runs, statistics over seeds, and whether a difference is luck."""

import json
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy
import pytest

from dign.core.errors import UserError
from dign.evaluation.results import Results
from dign.report.analysis.confidence_quantities import CALIBRATION, severity_error
from dign.report.analysis.quantities import CLEAN_ACCURACY, CORRUPTION_MEAN, MCA, MCA_N, NOISE_MEAN, corruption_accuracy
from dign.report.analysis.study import METHOD_ORDER, _evaluation_differences, make_study
from dign.report.analysis.tables import summary_table
from dign.report.html.page import build_page
from dign.report.load import load_run, load_runs


@pytest.mark.slow
def test_runs_that_differ_in_seed_alone_are_one_group_in_the_order_of_the_paper(grid_runs):
    study = make_study(*load_runs([grid_runs]))
    assert [group.label for group in study.groups] == list(METHOD_ORDER)
    assert all([run.seed for run in group.runs] == [0, 1, 2] for group in study.groups)
    assert [group.slot for group in study.groups] == list(range(10))


def test_a_statistic_is_the_mean_and_population_standard_deviation(grid_runs):
    group = make_study(*load_runs([grid_runs])).groups[0]
    values = [run.results.mca_n for run in group.runs]
    assert group.statistic(MCA_N).mean == pytest.approx(numpy.mean(values))
    assert group.statistic(MCA_N).std == pytest.approx(numpy.std(values))


def test_settings_that_differ_split_a_method_into_variants(fake_run, tmp_path):
    for weight in (0.2, 0.5):
        for seed in (0, 1):
            fake_run(
                tmp_path / f"{weight}-{seed}",
                "DiGN",
                seed,
                config={"weight": weight, "device": f"cuda:{seed}", "track": ("wandb", "none")[seed]},
            )
    study = make_study(*load_runs([tmp_path]))
    assert [(group.label, len(group.runs)) for group in study.groups] == [
        ("DiGN (weight 0.2)", 2),
        ("DiGN (weight 0.5)", 2),
    ]
    assert len({group.slot for group in study.groups}) == 2 and study.warnings == []


def test_a_setting_that_is_younger_than_a_run_had_its_default(fake_run, tmp_path):
    fake_run(tmp_path / "older", "DiGN", 0, config={"settings.dign.weight": 1.0})
    for seed, start in ((1, 0.0), (2, 0.5)):
        settings = {"settings.dign.weight": 1.0, "settings.dign.start": start, "label_smoothing": 0.0}
        fake_run(tmp_path / str(seed), "DiGN", seed, config=settings)
    groups = make_study(*load_runs([tmp_path])).groups
    assert [(group.label, len(group.runs)) for group in groups] == [("DiGN (start 0.0)", 2), ("DiGN (start 0.5)", 1)]


def test_two_runs_with_one_seed_are_never_averaged_as_if_they_were_two_seeds(fake_run, tmp_path):
    fake_run(tmp_path / "a", "DiGN", 0, run={"name": "first"})
    fake_run(tmp_path / "b", "DiGN", 0, run={"name": "second"})
    study = make_study(*load_runs([tmp_path]))
    assert [group.label for group in study.groups] == ["DiGN [first]", "DiGN [second]"]
    assert "seed 0" in study.warnings[0]


def test_different_data_sets_cannot_share_a_table(fake_run, tmp_path):
    fake_run(tmp_path / "a", data="digits")
    fake_run(tmp_path / "b", data="cifar10")
    with pytest.raises(UserError, match="cifar10, digits"):
        make_study(*load_runs([tmp_path]))


def test_different_severities_are_warned_about(fake_run, tmp_path):
    fake_run(tmp_path / "a", "DiGN")
    folder = fake_run(tmp_path / "b", "Standard")
    results = json.loads((folder / "results.json").read_text())
    for corruption in results["corruptions"].values():
        del corruption["severities"]["5"]
    (folder / "results.json").write_text(json.dumps(results))
    (warning,) = make_study(*load_runs([tmp_path])).warnings
    assert "at different severities: their means are not comparable" in warning


def test_images_that_are_no_test_images_are_told(fake_run, tmp_path):
    folder = fake_run(tmp_path / "a", "DiGN")
    results = json.loads((folder / "results.json").read_text())
    results["evaluation"]["split"] = "train"
    (folder / "results.json").write_text(json.dumps(results))
    study = make_study(*load_runs([tmp_path]))
    assert "Measured on train images, not on test images: see Runs." in study.warnings
    page = build_page(study)
    assert "train images" in page and not re.search(r"\d test images", page)


def test_different_evaluations_are_warned_about(fake_run, tmp_path):
    fake_run(tmp_path / "a", "DiGN", images=360)
    fake_run(tmp_path / "b", "Standard", images=100, families=("noise", "blur"))
    warnings = make_study(*load_runs([tmp_path])).warnings
    assert any("'images' (100, 360)" in warning for warning in warnings)
    assert any("different corruptions" in warning for warning in warnings)


def test_runs_of_different_code_are_warned_about(fake_run, tmp_path):
    fake_run(tmp_path / "a", "DiGN")
    (fake_run(tmp_path / "b", "Standard") / "run.json").write_text('{"commit": "other"}')
    assert make_study(*load_runs([tmp_path])).warnings == [
        "The runs were trained by 2 different states of the code (see Runs)."
    ]


def test_under_noise_alone_there_is_no_mean_over_all_corruptions(fake_run, tmp_path):
    noise, more = load_run(fake_run(tmp_path / "a")), load_run(fake_run(tmp_path / "b", families=("noise", "blur")))
    assert MCA.read(noise) is None and CALIBRATION["all", "rmse"].read(noise) is None
    assert CORRUPTION_MEAN.read(noise) is None and CORRUPTION_MEAN.read(more) == more.results.mca


def test_means_over_part_of_the_corruptions_are_quantities_of_their_own(fake_run, tmp_path):
    part = load_run(fake_run(tmp_path / "a", families=("noise", "blur")))
    assert MCA.read(part) is None and MCA_N.read(part) == part.results.mca_n and NOISE_MEAN.read(part) is None
    values = part.results.to_json()
    del values["corruptions"]["speckle_noise"]
    fewer = replace(part, results=Results.from_json(values))
    assert MCA_N.read(fewer) is None and NOISE_MEAN.read(fewer) == fewer.results.mca_n
    assert "mCA" not in "".join(column.label for column in summary_table(make_study([fewer])).columns)


def test_pooled_counts_give_the_scores_that_the_results_file_states(fake_run, tmp_path):
    run = load_run(fake_run(tmp_path / "a", families=("noise", "blur")))
    study = make_study([run])
    pooled = study.groups[0].pooled(study.noises).compute()
    assert pooled.ece == pytest.approx(CALIBRATION["noise", "ece"].read(run))
    assert pooled.accuracy == pytest.approx(MCA_N.read(run))
    everything = study.groups[0].pooled(study.counted).compute()
    assert everything.rmse == pytest.approx(run.results.calibration.all.rmse)
    assert severity_error(0, (), "").read(run) == pytest.approx(run.results.calibration.clean.ece)


def test_a_quantity_that_was_not_measured_is_none(fake_run, tmp_path):
    run = load_run(fake_run(tmp_path / "a"))
    assert corruption_accuracy("fog").read(run) is None
    assert make_study([run]).groups[0].statistic(corruption_accuracy("fog")) is None
    assert make_study([run]).groups[0].statistic(CLEAN_ACCURACY).count == 1


def test_a_folder_is_one_data_set_however_it_was_spelled(fake_run, tmp_path):
    for seed, data in enumerate(("folder:photos", "folder:photos/", "folder:./photos", "folder:/home/me/photos")):
        fake_run(tmp_path / str(seed), "DiGN", seed, data=data)
    study = make_study(*load_runs([tmp_path]))
    assert study.data == "folder:photos" and [len(group.runs) for group in study.groups] == [4]


def test_a_run_whose_settings_nobody_knows_stands_beside_those_that_differ(fake_run, tmp_path):
    for seed, weight in ((0, 0.2), (1, 0.5)):
        fake_run(tmp_path / str(weight), "DiGN", seed, config={"settings.dign.weight": weight})
    (fake_run(tmp_path / "unknown", "DiGN", 2) / "config.toml").unlink(missing_ok=True)
    groups = make_study(*load_runs([tmp_path])).groups
    assert [group.settings_text for group in groups] == ["weight 0.2", "weight 0.5", "weight not known"]


def test_variants_whose_settings_are_long_have_letters_in_the_order_of_their_settings(fake_run, tmp_path):
    for index, (sigma, weight) in enumerate(((10, 1), (2, 5), (2, 1))):
        settings = {"settings.dign.sigma_max": sigma, "settings.dign.weight": weight}
        for model in ("one", "two"):
            fake_run(tmp_path / f"{index}-{model}", "DiGN", model=model, config=settings)
    fake_run(tmp_path / "standard", "Standard", model="one")
    study = make_study(*load_runs([tmp_path]))
    named = {(group.model, group.label): group.settings_text for group in study.groups}
    lettered = {"A": "sigma_max 2, weight 1", "B": "sigma_max 2, weight 5", "C": "sigma_max 10, weight 1"}
    variants = {(model, f"DiGN {letter}"): text for model in ("one", "two") for letter, text in lettered.items()}
    assert named == {**variants, ("one", "Standard"): ""}
    assert len({group.slot for group in study.groups}) == 4


def test_where_one_setting_differs_and_has_a_long_name_its_values_stand_alone(fake_run, tmp_path):
    for sigma in (0.6, 0.2):
        for method in ("DiGN", "DiGN w/o CR"):
            fake_run(tmp_path / f"{method[5:7]}-{sigma}", method, config={"sigma_max": sigma})
    labels = [group.label for group in make_study(*load_runs([tmp_path])).groups]
    assert labels == ["DiGN w/o CR (0.2)", "DiGN w/o CR (0.6)", "DiGN (sigma_max 0.2)", "DiGN (sigma_max 0.6)"]


@pytest.mark.parametrize(
    "settings",
    [
        ({"settings.dign.weight": 1, "settings.augmix.weight": 12}, {"settings.dign.weight": 12}),  # two of one name
        ({"sigma_max_of_branches": True}, {"sigma_max_of_branches": False}),  # a bare word says nothing
    ],
)
def test_values_that_would_not_be_understood_alone_have_letters(fake_run, tmp_path, settings):
    for index, config in enumerate(settings):
        fake_run(tmp_path / str(index), "DiGN+AugMix", config=config)
    labels = [group.label for group in make_study(*load_runs([tmp_path])).groups]
    assert labels == ["DiGN+AugMix A", "DiGN+AugMix B"]


def test_more_variants_than_letters_have_numbers(fake_run, tmp_path):
    for index in range(28):
        fake_run(tmp_path / str(index), "DiGN", images=20, config={"setting": f"a value that is long {index:02}"})
    labels = [group.label for group in make_study(*load_runs([tmp_path])).groups]
    assert labels[25:] == ["DiGN Z", "DiGN 27", "DiGN 28"]


def test_calibrated_models_beside_others_are_pointed_out():
    keys = ("split", "images", "image_size", "profile", "jpeg_quality", "seed", "benchmark", "frost", "precision")

    def run(calibrator):
        evaluation = SimpleNamespace(**{**dict.fromkeys(keys, "same"), "split": "test"})
        results = SimpleNamespace(calibrator=calibrator, evaluation=evaluation, corruptions={})
        return SimpleNamespace(results=results, details={})

    assert _evaluation_differences([run(None), run(None)]) == []
    (note,) = _evaluation_differences([run(None), run(object())])
    assert "Some models are calibrated and others are not" in note


def test_runs_in_different_precision_are_told(fake_run, tmp_path):
    folders = [fake_run(tmp_path / name, run={"name": name}) for name in "ab"]
    results = json.loads((folders[0] / "results.json").read_text())
    results["evaluation"]["precision"] = "bf16"
    (folders[0] / "results.json").write_text(json.dumps(results))
    (note,) = _evaluation_differences([load_run(folder) for folder in folders])
    assert note == "The runs were evaluated with different 'precision' (32, bf16): compare with care."


def test_a_seed_of_0_is_told_as_such(fake_run, tmp_path):
    folders = [fake_run(tmp_path / name, run={"name": name}) for name in "ab"]
    results = json.loads((folders[0] / "results.json").read_text())
    results["evaluation"]["seed"] = 1
    (folders[0] / "results.json").write_text(json.dumps(results))
    (note,) = _evaluation_differences([load_run(folder) for folder in folders])
    assert note == "The runs were evaluated with different 'seed' (0, 1): compare with care."
