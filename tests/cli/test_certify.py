"""`dign certify` as a user runs it."""

import json

import pytest


@pytest.mark.slow
def test_a_run_is_certified_and_drawn(dign_command, tmp_path):
    out = tmp_path / "run"
    words = ("train", "digits", "--size", 8, "--epochs", 1, "--track", "none", "--method", "rse", "--out", out, "-q")
    assert dign_command(*words)[0] == 0
    code, said, told = dign_command(
        "certify", out, "--sigma", 0.2, "--n", 200, "--n0", 10, "--images", 5, "--figure", tmp_path / "c.png", "--json"
    )
    assert (
        code == 0
        and "Certified accuracy" in told
        and "average radius" in " ".join(told.split())
        and (tmp_path / "c.png").stat().st_size > 5000
    )
    (summary,) = json.loads(said)
    assert summary["images"] == 5 and "rows" not in summary
    hub, certified = tmp_path / "hub", tmp_path / "certified"
    assert dign_command("hub", "save", out, hub)[0] == 0
    plan = ("--sigma", 0.2, "--n", 200, "--n0", 10, "--images", 5)
    code, said, _ = dign_command("certify", f"hub:{hub}", *plan, "--out", certified, "--json")
    (shared,) = json.loads(said)
    assert code == 0 and shared["certified_accuracy"] == summary["certified_accuracy"]
    assert (certified / "hub" / "certificates-0.2.json").is_file() and not list(hub.glob("certificates*"))
    code, _, told = dign_command("certify", hub, *plan, "--data", f"folder:{tmp_path}/nowhere")
    assert code == 2 and "nowhere" in told
    code, _, told = dign_command("certify", out, *plan, "--data", "digits")
    assert code == 2 and "--data is for hub folders" in told


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--sigma", "0.2", "--radii", "a"), "invalid --radii 'a'"),
        (("--sigma", "0.2", "--figure", "x.gif"), "invalid --figure 'x.gif'"),
        ((), "--sigma"),
        (("--sigma", "0"), "--sigma must be a number above 0"),
        (("--sigma", "0.2", "--n", "10", "--n0", "20"), "--n must be at least --n0"),
        (("--sigma", "0.2", "--n", "100", "--radii", "3"), "--radii: 100 draws at sigma 0.2 certify at most"),
    ],
)
def test_wrong_options_are_one_sentence(dign_command, tmp_path, words, message):
    code, _, told = dign_command("certify", tmp_path, *words)
    assert code == 2 and message in told and len(told.strip().splitlines()) == 1
