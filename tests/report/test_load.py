"""Reading run folders: what is broken is named, nothing is trusted."""

import json
import os

import pytest

from dign.core.errors import UserError
from dign.evaluation.conclusion import describe_calibrator
from dign.report.load import find_run_folders, load_run, load_runs
from dign.runs.calibrator import Calibrator, read_calibrator, write_calibrator


def edit(folder, change):
    path = folder / "results.json"
    results = json.loads(path.read_text())
    change(results)
    path.write_text(json.dumps(results))


def test_a_run_is_read_with_all_its_files(fake_run, tmp_path):
    run = load_run(fake_run(tmp_path / "a", "DiGN", 3))
    assert (run.title, run.model, run.data, run.seed) == ("DiGN", "fastnet", "digits", 3)
    assert run.config["epochs"] == 12 and run.details["commit"] == "abc1234"
    assert len(run.metrics) == 12 * 25 + 12
    assert sorted(run.results.corruptions["shot_noise"].severities) == [1, 2, 3, 4, 5]


def test_only_results_json_is_needed(fake_run, tmp_path):
    folder = fake_run(tmp_path / "a")
    for name in ("config.toml", "run.json", "metrics.jsonl"):
        (folder / name).unlink()
    run = load_run(folder)
    assert run.config == {} and run.metrics == [] and run.landscape is None


def test_a_single_broken_run_is_an_error_that_names_it(fake_run, tmp_path):
    folder = fake_run(tmp_path / "broken-run")
    (folder / "results.json").write_text('{"schema": 1, "run"')
    with pytest.raises(UserError, match="broken-run"):
        load_runs([folder])


def test_among_several_a_broken_run_is_named_and_skipped(fake_run, tmp_path):
    fake_run(tmp_path / "good")
    bad = fake_run(tmp_path / "bad")
    (bad / "results.json").unlink()
    runs, warnings = load_runs([tmp_path])
    assert [run.folder.name for run in runs] == ["good"]
    assert len(warnings) == 1 and "bad" in warnings[0] and "dign evaluate" in warnings[0]


def test_missing_and_empty_folders_are_errors(tmp_path):
    with pytest.raises(UserError, match="no run folder"):
        load_runs([tmp_path / "nowhere"])
    with pytest.raises(UserError, match="holds no run"):
        load_runs([tmp_path])


def test_results_that_make_no_sense_are_refused_with_the_folder_and_the_reason(fake_run, tmp_path):
    folder = fake_run(tmp_path / "some-run")
    edit(folder, lambda results: results["clean"].update(accuracy=12.0))
    with pytest.raises(UserError, match=r"some-run' is broken: clean: its accuracy does not follow from its bins"):
        load_run(folder)


@pytest.mark.parametrize("content", [b"", b"[]", b"null", b"\xff\xfe\x00", b"[" * 100_000, b'{"schema": NaN}'])
def test_any_bytes_give_one_sentence(tmp_path, content):
    (tmp_path / "results.json").write_bytes(content)
    with pytest.raises(UserError, match="broken"):
        load_run(tmp_path)


def test_a_half_written_last_line_of_metrics_is_ignored_and_a_broken_one_is_reported(fake_run, tmp_path):
    folder = fake_run(tmp_path / "a")
    path = folder / "metrics.jsonl"
    whole = path.read_text()
    path.write_text(whole + '{"step": 1, "lo')
    notes = []
    assert len(load_run(folder, notes).metrics) == 312 and notes == []
    path.write_text("{]\n" + whole)
    assert load_run(folder, notes).metrics == [] and "metrics.jsonl" in notes[0]


def test_a_folder_given_twice_counts_once(fake_run, tmp_path):
    folder = fake_run(tmp_path / "a")
    runs, _ = load_runs([folder, tmp_path, folder / ".." / "a"])
    assert len(runs) == 1


def test_run_folders_are_found_at_depth_and_links_in_circles_do_not_hang(fake_run, tmp_path):
    fake_run(tmp_path / "x" / "y" / "run")
    os.symlink(tmp_path, tmp_path / "x" / "loop")
    assert [folder.name for folder in find_run_folders(tmp_path)] == ["run"]


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_linked_run_folders_are_found_and_a_loop_of_links_ends(fake_run, tmp_path):
    fake_run(tmp_path / "elsewhere" / "run")
    (tmp_path / "chosen").mkdir()
    (tmp_path / "chosen" / "run").symlink_to(tmp_path / "elsewhere" / "run")
    (tmp_path / "chosen" / "again").symlink_to(tmp_path / "chosen")
    assert tmp_path / "chosen" / "run" in find_run_folders(tmp_path / "chosen")
    assert len(load_runs([tmp_path / "chosen"])[0]) == 1


def test_a_run_that_was_calibrated_anew_is_named(fake_run, tmp_path):
    folder = fake_run(tmp_path / "a")
    runs, notes = load_runs([folder])
    assert notes == []
    classes = len(runs[0].results.classes)
    write_calibrator(folder, Calibrator("temperature", 2.0, "digits", 100, "clean", 0.5, 0.4))
    assert read_calibrator(folder, classes) is not None
    _, notes = load_runs([folder])
    assert len(notes) == 1 and "was calibrated anew after it was measured" in notes[0] and "dign evaluate" in notes[0]
    edit(
        folder,
        lambda results: results.update(
            calibrator=describe_calibrator(read_calibrator(folder, classes), None).to_json()
        ),
    )
    assert load_runs([folder])[1] == []
