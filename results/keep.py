"""Keep runs in a folder of results, and make its table, its page and its figure.

python results/keep.py RUNS FOLDER [--weights] [--images]        e.g. runs/claims results/claims-cifar10 --weights

Of each run that is done its settings and its results are kept: with --images also what each image got, which is 60 bytes
for each image and corruption; with --weights the model, from which `dign evaluate FOLDER/runs/NAME` measures that again.
Table, page and figure are made of all runs that FOLDER has, whole where RUNS still has them.
"""

import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from dign import Results
from dign.core.files import read_json, write_json

WEIGHTS = ("model.safetensors", "calibration.json")


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


if __name__ == "__main__":
    arguments = [word for word in sys.argv[1:] if not word.startswith("--")]
    if len(arguments) != 2:
        sys.exit(__doc__)
    main(*map(Path, arguments), weights="--weights" in sys.argv, images="--images" in sys.argv)
