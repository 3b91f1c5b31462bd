"""The table of what variants differ in."""

from dign.report.analysis.settings import settings_table
from dign.report.analysis.study import make_study
from dign.report.load import load_runs


def test_every_variant_has_its_settings_and_others_have_no_row(fake_run, tmp_path):
    for sigma, weight in ((0.1, 1), (0.1, 5), (0.3, 1)):
        settings = {"settings.dign.sigma_max": sigma, "settings.dign.weight": weight}
        fake_run(tmp_path / f"{sigma}-{weight}", "DiGN", config=settings)
    fake_run(tmp_path / "standard", "Standard")
    table = settings_table(make_study(*load_runs([tmp_path])))
    assert [column.label for column in table.columns] == ["sigma_max", "weight"]
    rows = {row.label: [cell.text for cell in row.cells] for row in table.rows}
    assert rows == {"DiGN A": ["0.1", "1"], "DiGN B": ["0.1", "5"], "DiGN C": ["0.3", "1"]}


def test_runs_with_the_same_seed_and_settings_are_told_apart_by_their_names(fake_run, tmp_path):
    for name in ("a-run-with-a-long-name", "b-run-with-a-long-name"):
        fake_run(tmp_path / name, "DiGN", run={"name": name})
    table = settings_table(make_study(*load_runs([tmp_path])))
    rows = {row.label: row.cells[0].text for row in table.rows}
    assert rows == {"DiGN A": "a-run-with-a-long-name", "DiGN B": "b-run-with-a-long-name"}


def test_methods_without_variants_need_no_table(demo_runs):
    assert settings_table(make_study(*load_runs([demo_runs]))) is None
