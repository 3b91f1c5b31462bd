import subprocess
import sys

import pytest
from PIL import Image

from dign.cli import main


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """`dign ARGS` with a cache of its own: exit code, standard output, standard error."""
    monkeypatch.setenv("DIGN_DATA", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "200")

    def call(*args: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as stop:
            main(list(args))
        printed = capsys.readouterr()
        return stop.value.code or 0, printed.out, printed.err

    return call


@pytest.fixture
def photographs(tmp_path):
    for name in ("cats", "dogs"):
        (tmp_path / "pets" / name).mkdir(parents=True)
        for index in range(10 if name == "cats" else 5):
            Image.new("RGB", (20 + index, 16), (index, 50, 90)).save(tmp_path / "pets" / name / f"{index}.jpg")
    return tmp_path / "pets"


def test_show_counts_the_splits(run, photographs):
    code, out, err = run("data", "show", f"folder:{photographs}", "--size", "16", "--validation", "0.25")
    assert code == 0
    assert "2 classes, images of 16x16 pixels" in out
    assert "cats, dogs" in out
    rows = {words[1]: words[3:8:2] for words in (line.split() for line in out.splitlines()) if len(words) == 9}
    # 10 cats and 5 dogs: a fifth for testing is 2 + 1, a quarter of the rest 2 + 1
    assert rows == {"train": ["9", "3", "6"], "validation": ["3", "1", "2"], "test": ["3", "1", "2"]}
    assert "Decoding images" in err


def test_fetch_and_verify_of_what_needs_no_download(run):
    assert run("data", "fetch", "digits")[:2] == (0, "digits is included in dign: there is nothing to fetch.\n")
    code, out, _ = run("data", "verify", "digits")
    assert code == 0
    assert out.count("good") == 2


def test_verify_finds_the_flipped_bit_and_exits_with_2(run, photographs, tmp_path):
    run("data", "show", f"folder:{photographs}", "--size", "8")
    assert run("data", "verify", f"folder:{photographs}")[0] == 0
    (file,) = (tmp_path / "cache").glob("*/test_images.npy")
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    code, out, err = run("data", "verify", f"folder:{photographs}")
    assert code == 2
    assert out.count("WRONG") == 1
    assert "is damaged" in err


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (("show", "cifar11"), "Did you mean 'cifar10'?"),
        (("show", "cifar10"), "run `dign data fetch cifar10`"),
        (("verify", "tiny-imagenet"), "run `dign data fetch tiny-imagenet`"),
        (("fetch", "cifar100", "--from", "nowhere.tar.gz"), "There is no nowhere.tar.gz"),
        (("fetch", "digits", "--from", "."), "included in dign"),
        (("show", "digits", "--validation", "1.5"), "invalid validation"),
        (("show", "folder:nowhere"), "There is no folder"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(run, args, sentence):
    code, _, err = run("data", *args)
    assert code == 2
    assert sentence in err
    assert "Traceback" not in err
    assert err.count("\n") == 1


def test_mixed_sizes_ask_for_a_size(run, photographs):
    code, _, err = run("data", "show", f"folder:{photographs}")
    assert code == 2
    assert "choose a --size in pixels" in err


def test_help_and_names_do_not_wait_for_torch():
    program = (
        "import sys\n"
        "from click.testing import CliRunner\n"
        "from dign.cli.data import command\n"
        "for verb in ([], ['fetch'], ['show'], ['verify']):\n"
        "    result = CliRunner().invoke(command, [*verb, '--help'])\n"
        "    assert result.exit_code == 0 and 'Example' in result.output, result.output\n"
        "import dign.data\n"
        "from dign.data.names import NAMES\n"
        "assert not {'torch', 'numpy', 'PIL', 'rich'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_light_list_of_names_is_the_registry():
    from dign.data import SOURCES
    from dign.data.names import NAMES

    assert list(NAMES) == list(SOURCES)


def test_the_cache_is_listed_and_cleared(run, photographs):
    assert run("data", "show", f"folder:{photographs}", "--size", "16")[0] == 0
    code, out, _ = run("data", "cache")
    assert code == 0 and "decoded images of folder:" in out and "used today" in out
    name = next(line.split()[2] for line in out.splitlines() if "decoded images" in line).rstrip(":")
    assert "would remove" in run("data", "clear", name, "--dry-run")[1] and name in run("data", "cache")[1]
    assert "0 kB free again" in run("data", "clear", "--unused-for", "1")[1]
    assert f"removed {name}" in run("data", "clear", f"folder:{photographs}")[1]
    assert run("data", "cache", "--json")[1].strip() == "[]"
    code, _, err = run("data", "clear")
    assert code == 2 and "What is to be removed?" in err


def test_pictures_that_cannot_be_read_are_skipped_and_counted(run, photographs):
    (photographs / "cats" / "0.jpg").write_bytes(b"no picture")
    code, _, err = run("data", "show", f"folder:{photographs}", "--size", "16")
    assert code == 2 and "--skip-bad" in err
    code, out, _ = run("data", "show", f"folder:{photographs}", "--size", "16", "--skip-bad")
    assert code == 0 and "left out, since they cannot be read: cats/0.jpg" in out
