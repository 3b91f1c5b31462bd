"""Keep runs in a folder of results, and make its tables, its page and its figure.

python results/keep.py RUNS FOLDER [--weights] [--images]        e.g. runs/claims results/claims-cifar10 --weights

Of each run that is done its settings and its results are kept: with --images also what each image got, which is 60
bytes for each image and corruption; with --weights the model, from which `dign evaluate FOLDER/runs/NAME` measures that
again. Tables, page and figure are made of all runs that FOLDER has, whole where RUNS still has them. The short table is
written behind the mark `<!-- FOLDER, made by results/keep.py -->` in FOLDER/README.md and the project's README.
"""

import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory

from result_tables import cell, fill, format_table, mark_best, noise_ece_as_trained

from dign import Results
from dign.core.files import read_json, write_json
from dign.report.analysis.study import make_study
from dign.report.load import Run, load_runs

WEIGHTS = ("model.safetensors", "calibration.json")
HEAD = (
    "",
    "clean",
    "under noise (mCA-N)",
    "under all corruptions (mCA)",
    "calibration error under noise (ECE-N)",
    "ECE-N as trained",
    "training, minutes of one core",
)
HIGHER_IS_BETTER = (True, True, True, False, False)


def main(runs: Path, folder: Path, *, weights: bool, images: bool) -> None:
    kept = folder / "runs"
    for file in sorted(runs.glob("*/results.json")):
        keep(file.parent, kept / file.parent.name, weights=weights, images=images)
    with TemporaryDirectory() as elsewhere:
        for run in sorted(kept.iterdir()):
            whole = runs / run.name
            shutil.copytree(whole if (whole / "results.json").exists() else run, Path(elsewhere) / run.name)
        report(elsewhere, "--out", folder / "report.html", "--figure", folder / f"{folder.name}.png")
        report(elsewhere, "--format", "markdown", "--out", folder / "table.md")
    for page in (folder / "README.md", folder.parents[1] / "README.md"):
        if page.exists() and mark(folder) in page.read_text(encoding="utf-8"):
            fill(page, {mark(folder): short_table(folder)})


def keep(run: Path, place: Path, *, weights: bool, images: bool) -> None:
    place.mkdir(parents=True, exist_ok=True)
    results = Results.load(run / "results.json")
    (results if images else replace(results, images=None)).save(place / "results.json")
    for name in ("config.toml", *WEIGHTS * weights):
        shutil.copy2(run / name, place / name)
    if (run / "run.json").exists():
        info = read_json(run / "run.json")
        info.pop("folder", None)  # where the images were on this machine
        write_json(place / "run.json", info)


def report(*options: str | Path) -> None:
    subprocess.run(["dign", "report", *options, "--quiet"], check=True)


def mark(folder: Path) -> str:
    return f"<!-- results/{folder.name}, made by results/keep.py -->\n"


def short_table(folder: Path) -> str:
    """Each method's means over its seeds, the best in bold."""
    groups = make_study(*load_runs([folder / "runs"])).groups
    columns = zip(*(scores(group.runs) for group in groups), strict=True)
    marked = [
        mark_best(list(map(cell, column)), max if higher else min)
        for column, higher in zip(columns, HIGHER_IS_BETTER, strict=True)
    ]
    minutes = (training_minutes(group.runs) for group in groups)
    return format_table(HEAD, zip((group.label for group in groups), *marked, minutes, strict=True))


def scores(runs: Sequence[Run]) -> list[list[float | None]]:
    """The numbers of each column but the last, of each seed."""
    results = [run.results for run in runs]
    return [
        [each.clean.accuracy for each in results],
        [each.mca_n for each in results],
        [each.mca for each in results],
        [each.calibration.noise.ece for each in results],
        [noise_ece_as_trained(each) for each in results],
    ]


def training_minutes(runs: Sequence[Run]) -> str:
    seconds = [run.details["seconds"] for run in runs if "seconds" in run.details]
    return f"{fmean(seconds) / 60:.0f}" if seconds else "–"


if __name__ == "__main__":
    arguments = [word for word in sys.argv[1:] if not word.startswith("--")]
    if len(arguments) != 2:
        sys.exit(__doc__)
    chosen, into = (Path(word).resolve() for word in arguments)
    main(chosen, into, weights="--weights" in sys.argv, images="--images" in sys.argv)
