"""`dign report` as a user types it."""

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from dign.cli.report import command, terminal_table
from dign.core.errors import UserError
from dign.report.make import comparison_of


def report(*arguments, code=0):
    result = CliRunner().invoke(command, [str(argument) for argument in arguments], catch_exceptions=code != 0)
    assert result.exit_code == code or code is None, result.output
    return result


def test_help_does_not_import_torch():
    check = "import sys; import dign.cli.report; assert 'torch' not in sys.modules and 'rich' not in sys.modules"
    subprocess.run([sys.executable, "-c", check], check=True)
    assert "dign report --compare" in report("--help").output


def test_html_is_written_and_the_table_is_shown(demo_runs, tmp_path):
    out = tmp_path / "deep" / "report.html"
    result = report(demo_runs, "--out", out)
    assert out.read_text().startswith("<!doctype html>")
    assert "DiGN" in result.output and "mCA-N" in result.output and str(out) in result.output


def test_the_ending_of_out_chooses_the_format(demo_runs, tmp_path):
    for name, start in (("t.md", "## Summary"), ("t.csv", "table,"), ("t.tex", "% Compile")):
        report(demo_runs, "--out", tmp_path / name)
        assert (tmp_path / name).read_text().startswith(start)


def test_tables_go_to_the_terminal_without_out(demo_runs):
    result = report(demo_runs, "--format", "markdown")
    assert result.stdout.startswith("## Summary") and "| DiGN |" in result.stdout


def test_csv_into_a_folder_gives_a_file_per_table(demo_runs, tmp_path):
    report(demo_runs, "--format", "csv", "--out", tmp_path / "tables")
    names = {path.name for path in (tmp_path / "tables").iterdir()}
    assert {"summary.csv", "corruptions.csv", "severities.csv", "table1.csv", "claims.csv"} <= names


def test_a_skipped_run_is_named_on_standard_error(fake_run, tmp_path):
    fake_run(tmp_path / "good")
    (fake_run(tmp_path / "bad") / "results.json").unlink()
    result = report(tmp_path, "--out", tmp_path / "r.html")
    assert "warning" in result.stderr and "bad" in result.stderr


def test_data_chooses_among_data_sets(fake_run, tmp_path):
    fake_run(tmp_path / "a", data="digits")
    fake_run(tmp_path / "b", data="cifar10")
    out = tmp_path / "r.html"
    assert str(report(tmp_path, "--out", out, code=1).exception).endswith("choose one with --data")
    assert not out.exists()
    report(tmp_path, "--data", "cifar10", "--out", out)
    assert "none of these runs" in str(report(tmp_path, "--data", "mnist", "--out", out, code=1).exception)


def test_compare_tells_two_runs_of_one_method_apart(fake_run, tmp_path):
    first, second = fake_run(tmp_path / "old" / "run"), fake_run(tmp_path / "new" / "run")
    study = comparison_of(first, second)
    assert [group.label for group in study.groups] == ["DiGN [old]", "DiGN [new]"]
    assert len({group.slot for group in study.groups}) == 2 and study.warnings == []
    result = report("--compare", first, second, "--format", "markdown")
    assert "## DiGN \\[old\\] and DiGN \\[new\\]" in result.stdout


def test_mistakes_are_one_sentence(demo_runs, tmp_path):
    for arguments in ([], [demo_runs, "--compare", demo_runs, demo_runs], [tmp_path / "nowhere"]):
        error = report(*arguments, code=1).exception
        assert isinstance(error, UserError) and str(error).count("\n") == 0
    assert isinstance(report(demo_runs, "--out", tmp_path, code=1).exception, UserError)


@pytest.mark.slow
def test_a_narrow_terminal_gets_the_first_columns_unbroken(grid_runs):
    from rich.console import Console

    from dign.report.analysis.tables import summary_table
    from dign.report.make import study_of

    table = summary_table(study_of([grid_runs]))
    for width, expected, missing in ((80, "ECE-N", "SH-N"), (200, "SH-N", None)):
        console = Console(width=width, record=True, quiet=True)
        with console.capture() as captured:
            console.quiet = False
            console.print(terminal_table(table, width))
        lines = captured.get().splitlines()
        assert sum("DiGN w/o CR" in line and " ± " in line for line in lines) == 1
        head = next(line for line in lines if "Method" in line)
        assert expected in head and (missing is None or missing not in head)
        said = [line for line in lines if "Too narrow for" in line]
        assert bool(said) == (missing is not None)
        assert missing is None or missing in " ".join(lines[lines.index(said[0]) :])


def test_markup_and_escape_codes_in_names_do_nothing_in_the_terminal(fake_run, tmp_path):
    fake_run(tmp_path / "a", run={"title": "[red]x[/red]\x1b[2J"})
    result = report(tmp_path / "a", "--out", tmp_path / "r.html")
    assert "\x1b[2J" not in result.output and "[red]x" in result.output


@pytest.mark.parametrize(
    "arguments", [("--out", "mine.jpg"), ("--out", "results.json"), ("--figure", "mine.jpg"),
                  ("--format", "html", "--out", "x.png", "--figure", "x.png")]
)  # fmt: skip
def test_a_file_that_is_something_else_is_not_written_over(demo_runs, tmp_path, monkeypatch, arguments, dign_command):
    monkeypatch.chdir(tmp_path)
    for name in arguments:
        (tmp_path / name).write_text("something else")
    code, _, said = dign_command("report", demo_runs, *arguments)
    assert code == 2 and said.count("\n") == 1
    assert all((tmp_path / name).read_text() == "something else" for name in arguments)


def test_json_has_the_summary_in_numbers_and_quiet_says_nothing(demo_runs, tmp_path):
    out = tmp_path / "r.html"
    result = report(demo_runs, "--out", out, "--json")
    document = json.loads(result.stdout)
    assert document["written"] == [str(out)] and out.exists()
    rows = {row["Method"]: row for row in document["summary"]}
    assert isinstance(next(value for key, value in rows["DiGN"].items() if "mCA-N" in key or "Noise" in key), float)
    assert report(demo_runs, "--out", out, "--quiet").output == ""
