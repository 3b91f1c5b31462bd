"""Add the runs of experiments/rivals-cifar10.toml and its variants; make the tables here and in docs/methods/index.md.

python results/rivals-cifar10/make.py runs/rivals [runs/rivals-masked] [runs/rivals-noise2net] [runs/rivals-ensemble]

Results of runs that are not in those folders stay as they are. The files are kept without what each image got, which is
8 MB for each run: tables are made with it where the run is there.
"""

import csv
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory

from dign import Results
from dign.core.catalog import METHODS as DESCRIPTIONS
from dign.core.files import write_text
from dign.evaluation.results import pool_promises
from dign.methods import METHODS
from dign.report.load import Run, load_run

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))
from result_tables import (  # noqa: E402
    ALL,
    C_BAR,
    CLEAN,
    NOISE,
    NOISE_ECE,
    NOISE_ECE_AS_TRAINED,
    best_in_bold,
    cell,
    decide_claims,
    fill,
    format_table,
    report,
)

PROJECT = HERE.parents[1]
SECONDS = HERE / "training-seconds.csv"
START = "<!-- made by make.py -->\n"
PROMISES_START = "<!-- promises, made by make.py -->\n"
PAPER_START = "<!-- the paper's methods, made by make.py -->\n"
CLAIMS_START = "<!-- the paper's claims, made by make.py -->\n"
PAPER = ("Standard", "AT", "TRADES", "RSE", "DeepAugment", "AugMix", "AugMax", "DiGN w/o CR", "DiGN", "DiGN+AugMix")
"""The methods of the paper's tables."""
PAPER_COLUMNS = (CLEAN, NOISE, ALL, C_BAR, NOISE_ECE, NOISE_ECE_AS_TRAINED)
VARIANTS = (", masked", ", Noise2Net")
METHODS_START = "<!-- all methods, made by results/rivals-cifar10/make.py -->\n"
METHODS_HEAD = ("", "what it does", "clean", "mCA-N", "mCA", "training, minutes of one core")
HEAD = ("", "clean", "mCA-N", "mCA", "C-bar", "ECE-N", "ECE-N, as trained", "training, minutes of one core")


def main(folders: list[str]) -> None:
    if not folders:
        sys.exit(__doc__)
    runs = [file.parent for folder in folders for file in sorted(Path(folder).glob("*/results.json"))]
    with TemporaryDirectory() as elsewhere:  # all results alike, those of new runs with what each image got
        place = Path(elsewhere)
        new = dict(keep(run, place) for run in runs)
        for file in HERE.glob("cifar10-*.json"):
            if file.stem not in new:
                Results.load(file).save(place / file.stem / "results.json")
        seconds = dict(sorted((read_seconds() | new).items()))
        write_text(SECONDS, "run,seconds\n" + "".join(f"{name},{value}\n" for name, value in seconds.items()))
        report([place], "--out", place / "page.html", "--figure", HERE / "rivals.png")
        report([place], "--format", "markdown", "--out", HERE / "table.md")
        of_paper = [place / each.run.name for title, runs in rows() if title in PAPER for each in runs]
        report(of_paper, "--out", place / "page.html", "--figure", HERE / "paper.png")
        claims = decide_claims(of_paper)
    tables = {START: table(), PAPER_START: paper_table(), CLAIMS_START: claims, PROMISES_START: promises()}
    fill(HERE / "README.md", tables)
    fill(PROJECT / "docs" / "methods" / "index.md", {METHODS_START: list_methods()})


def keep(folder: Path, place: Path) -> tuple[str, float]:
    """Store the results of a run, called as its method is, here and whole in a folder of `place`.

    Its name, and the seconds that its training took.
    """
    run = load_run(folder)
    variant = name_variant(run)
    title = run.results.run.title + (f", {variant}" if variant else "")
    name = folder.name.replace("-seed", f"-{variant.lower()}-seed") if variant else folder.name
    results = replace(run.results, run=replace(run.results.run, title=title, name=name))
    results.save(place / name / "results.json")
    replace(results, images=None).save(HERE / f"{name}.json")
    members = [load_run(folder.parents[1] / "rivals" / member) for member in run.results.run.members or ()]
    return name, sum(each.details["seconds"] for each in members or [run])


def name_variant(run: Run) -> str:
    """What distinguishes a run from others of its method; "" for the usual one."""
    if run.results.run.method == "dign" and run.config.get("settings.dign.density", 1) < 1:
        return "masked"
    if run.results.run.method == "deepaugment" and run.config.get("settings.deepaugment.networks") == "noise2net":
        return "Noise2Net"
    return ""


def read_seconds() -> dict[str, float]:
    with SECONDS.open() as file:
        return {row["run"]: float(row["seconds"]) for row in csv.DictReader(file)}


def rows() -> Iterator[tuple[str, list[Results]]]:
    """The runs of each method, the highest mCA first."""
    found: dict[str, list[Results]] = {}
    for file in sorted(HERE.glob("cifar10-*.json")):
        results = Results.load(file)
        found.setdefault(results.run.title, []).append(results)
    yield from sorted(found.items(), key=lambda row: -fmean(each.mca or 0 for each in row[1]))


def cells(runs: list[Results]) -> list[str]:
    """What the table says about a method."""
    seconds = read_seconds()
    numbers = [cell(map(column.read, runs)) for column in PAPER_COLUMNS]
    return [*numbers, f"{fmean(seconds[each.run.name] for each in runs) / 60:.0f}"]


def promises() -> str:
    """How promises are kept, of the methods with several seeds: most answers wrong under noise first."""
    places = ("clean", "noise", "all")
    found = {}
    for title, runs in rows():
        if len(runs) > 1 and all(each.promises and each.promises.threshold for each in runs):
            kept = [pool_promises(each) for each in runs]
            pools = [[one[place] for one in kept] for place in places]
            found[title] = [
                *(cell(each.error for each in pool) for pool in pools),
                *(cell(each.answered for each in pool) for pool in pools),
                *(cell(each.coverage["adaptive"] for each in pool) for pool in pools),
            ]
    order = sorted(found, key=lambda title: -float(found[title][1].split()[0]))
    heads = ("wrong among the answers", "answered", "true class in its set")
    names = ("clean", "noise", "all corruptions")
    head = ("", *(f"{head}: {name}" for head in heads for name in names))
    return format_table(head, ((title, *found[title]) for title in order))


def table() -> str:
    return format_table(HEAD, ((title, *cells(runs)) for title, runs in rows()))


def paper_table() -> str:
    """The paper's methods alone, in its order, the best of each column in bold."""
    found = dict(rows())
    titles = [title for title in PAPER if title in found]
    lines = best_in_bold(PAPER_COLUMNS, [found[title] for title in titles])
    names = (title.replace("w/o CR", "without consistency").replace("+", " + ") for title in titles)
    head = ("", *(column.head for column in PAPER_COLUMNS))
    return format_table(head, ((name, *line) for name, line in zip(names, lines, strict=True)))


def list_methods() -> str:
    """Every method with its page, and how it did where it was measured here."""
    measured = {runs[0].run.method: runs for title, runs in rows() if not title.endswith(VARIANTS)}
    found = {key: cells(measured[key]) if key in measured else ["–"] * len(HEAD) for key in DESCRIPTIONS}
    lines = (
        (f"[{METHODS[key].title}]({key}.md)", does, *found[key][:3], found[key][-1])
        for key, does in DESCRIPTIONS.items()
    )
    return format_table(METHODS_HEAD, lines)


if __name__ == "__main__":
    main(sys.argv[1:])
