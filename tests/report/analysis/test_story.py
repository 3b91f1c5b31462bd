"""The opening lines say what the numbers say."""

import re

from dign.report.analysis.story import headline, opening
from dign.report.analysis.study import make_study
from dign.report.html.page import build_page
from dign.report.load import load_runs
from dign.report.make import study_of


def test_the_opening_says_who_is_best_with_the_numbers(demo_runs):
    study = study_of([demo_runs])
    means = {group.label: group.runs[0].results.mca_n for group in study.groups}
    assert headline(study) == (
        f"DiGN keeps {means['DiGN']:.1f} % accuracy under noise; Standard keeps {means['Standard']:.1f} %."
    )
    text = " ".join(opening(study))
    assert "best of 4" in text and "nobody can say whether that is luck" in text


def test_the_opening_of_one_run_and_of_runs_without_noise(fake_run, tmp_path):
    fake_run(tmp_path / "one")
    assert headline(study_of([tmp_path])).startswith("DiGN is right on")
    fake_run(tmp_path / "blur" / "b", "DiGN", families=("blur",))
    fake_run(tmp_path / "blur" / "c", "RSE", families=("blur",))
    study = study_of([tmp_path / "blur"])
    assert "under corruptions" in headline(study) and "<h1>" in build_page(study)
    fake_run(tmp_path / "clean" / "d", families=())
    assert "on clean images" in headline(study_of([tmp_path / "clean"]))
    assert "<h1>" in build_page(study_of([tmp_path / "clean"]))


def test_who_is_level_on_clean_images_is_not_called_the_best_there(fake_run, tmp_path):
    for name in ("a", "b"):  # the same numbers
        fake_run(tmp_path / name, "DiGN", config={"settings.dign.sigma_max": 0.1, "settings.dign.weight": name})
    text = " ".join(opening(study_of([tmp_path])))
    assert "no other reaches" not in text and "level with it" in text


def test_a_letter_is_explained_at_once(fake_run, tmp_path):
    for sigma, weight in ((0.1, 1.0), (0.3, 5.0)):
        settings = {"settings.dign.sigma_max": sigma, "settings.dign.weight": weight}
        fake_run(tmp_path / str(sigma), "DiGN", config=settings)
    study = study_of([tmp_path])
    assert opening(study)[0].startswith("DiGN A (sigma_max 0.1, weight 1.0) is the best of 2")
    assert "1 method in 2 variants" in build_page(study)


def test_the_name_of_a_bare_value_is_told_at_once(fake_run, tmp_path):
    for sigma in (0.2, 0.6):
        fake_run(tmp_path / str(sigma), "DiGN w/o CR", config={"sigma_max": sigma})
    assert opening(study_of([tmp_path]))[0].startswith("DiGN w/o CR (sigma_max 0.2) is the best of 2")


def test_significance_is_spoken_of_where_there_are_seeds(grid_runs):
    assert re.search(
        r"over 3 seeds \(p [=<] 0\.\d+, corrected for 45 pairs\)", " ".join(opening(study_of([grid_runs])))
    )


def test_study_and_page_agree_on_the_best(grid_runs):
    study = make_study(*load_runs([grid_runs]))
    assert headline(study).startswith("DiGN+AugMix keeps")
