"""A small folder for trials of fine-tuning: every fourth class of the grocery photographs, training images alone.

python results/photos/trials.py grocery trial
dign train folder:trial --size 128 --model efficientnet_lite0 --init efficientnet-lite0-57934424.pth \\
    --method standard --epochs 4 --out runs/trial

Two of five photographs of a class validate, three train; the test split is a formality.
"""

import shutil
import sys
from pathlib import Path


def main(grocery: Path, out: Path) -> None:
    for folder in sorted((grocery / "train").iterdir())[::4]:
        pictures = sorted(folder.glob("*.jpg"))
        splits = {picture: "val" if number % 5 in (1, 3) else "train" for number, picture in enumerate(pictures)}
        for picture, split in [*splits.items(), (pictures[0], "test")]:
            target = out / split / folder.name
            target.mkdir(parents=True, exist_ok=True)
            shutil.copy(picture, target / picture.name)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
