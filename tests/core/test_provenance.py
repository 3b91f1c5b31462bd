"""The commit that results are stamped with."""

import subprocess

import dign.core.provenance
from dign.core.provenance import git_commit


def test_the_commit_of_the_repository_that_a_package_is_installed_in_is_not_its_own(tmp_path, monkeypatch):
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(tmp_path)]
    place = tmp_path / "core" / "provenance.py"
    place.parent.mkdir()
    place.touch()
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "theirs"]):
        subprocess.run([*git, *words], check=True)
    monkeypatch.setattr(dign.core.provenance, "__file__", str(place))
    assert git_commit() is None
    (tmp_path / "other.py").touch()
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "ours"], check=True)
    head = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    assert git_commit() == head
    (tmp_path / "other.py").write_text("changed")
    assert git_commit() == head + "+"
