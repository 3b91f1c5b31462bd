"""Keep runs in a folder of results, and make its tables, its page and its figure.

python results/keep.py RUNS FOLDER [--weights] [--images]        e.g. runs/claims results/claims-cifar10 --weights

Of each run that is done its settings and its results are kept: with --images also what each image got, about 6 bytes
for each image, corruption and severity; with --weights the model: a copy of FOLDER/runs/NAME is a run that
`dign evaluate COPY` measures again, with what each image got. What FOLDER already keeps of a run it goes on keeping.
Tables, page and figure are made of all runs that FOLDER has, whole where RUNS still has them. In FOLDER/README.md the
short table is written behind the mark `<!-- FOLDER, made by results/keep.py -->`, which the project's README may have
too, and what the runs say about the paper's claims behind `<!-- claims, made by results/keep.py -->`, if that is there.
"""

import argparse
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean

from result_tables import (
    ALL,
    CLEAN,
    NOISE,
    NOISE_ECE,
    NOISE_ECE_AS_TRAINED,
    NOTHING,
    best_in_bold,
    decide_claims,
    fill,
    format_table,
)
from result_tables import report as make_report

from dign import Results
from dign.core.files import read_json, write_json
from dign.report.analysis.study import make_study, spell_out
from dign.report.load import Run, load_runs

PROJECT = Path(__file__).parents[1]
COLUMNS = (CLEAN, NOISE, ALL, NOISE_ECE, NOISE_ECE_AS_TRAINED)
WEIGHTS = ("model.safetensors", "calibration.json")
CLAIMS_MARK = "<!-- claims, made by results/keep.py -->\n"


def main(runs: Path, folder: Path, *, weights: bool, images: bool) -> None:
    for file in sorted(runs.glob("*/results.json")):
        keep(file.parent, folder / "runs" / file.parent.name, weights=weights, images=images)
    kept = sorted((folder / "runs").iterdir())
    sources = [runs / run.name if (runs / run.name / "results.json").exists() else run for run in kept]
    without = [run.name for run in load_runs(sources)[0] if run.results.images is None]
    if 0 < len(without) < len(sources):
        print(f"These have no record of images, and are compared over seeds alone: {', '.join(without)}")
    make_report(sources, "--out", folder / "report.html", "--figure", folder / f"{folder.name}.png")
    make_report(sources, "--format", "markdown", "--out", folder / "table.md")
    own, front, table = folder / "README.md", PROJECT / "README.md", short_table(folder)
    fill(own, {mark(folder): table})
    if CLAIMS_MARK in own.read_text(encoding="utf-8"):
        fill(own, {CLAIMS_MARK: decide_claims(sources)})
    if mark(folder) in front.read_text(encoding="utf-8"):
        fill(front, {mark(folder): table})


def keep(run: Path, place: Path, *, weights: bool, images: bool) -> None:
    place.mkdir(parents=True, exist_ok=True)
    results = Results.load(run / "results.json")
    if not (images or has_images(place)):
        results = replace(results, images=None)
    results.save(place / "results.json")
    shutil.copy2(run / "config.toml", place / "config.toml")
    for name in WEIGHTS:
        if (run / name).exists() and (weights or (place / name).exists()):
            shutil.copy2(run / name, place / name)
    if (run / "run.json").exists():
        info = read_json(run / "run.json")
        info.pop("folder", None)  # where the images were on this machine
        write_json(place / "run.json", info)


def has_images(place: Path) -> bool:
    file = place / "results.json"
    return file.exists() and Results.load(file).images is not None


def mark(folder: Path) -> str:
    return f"<!-- results/{folder.name}, made by results/keep.py -->\n"


def short_table(folder: Path) -> str:
    """Each method's means over its seeds."""
    groups = make_study(*load_runs([folder / "runs"])).groups
    rows = best_in_bold(COLUMNS, [[run.results for run in group.runs] for group in groups])
    head = ("", *(column.head for column in COLUMNS), "training, minutes of one core")
    lines = ((spell_out(group), *row, training_minutes(group.runs)) for group, row in zip(groups, rows, strict=True))
    return format_table(head, lines)


def training_minutes(runs: Sequence[Run]) -> str:
    seconds = [run.details["seconds"] for run in runs if "seconds" in run.details]
    return f"{fmean(seconds) / 60:.0f}" if seconds else NOTHING


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--weights", action="store_true")
    parser.add_argument("--images", action="store_true")
    given = parser.parse_args()
    main(given.runs, given.folder.resolve(), weights=given.weights, images=given.images)
