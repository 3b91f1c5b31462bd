"""The Grocery Store photographs (Klasson, Zhang and Kjellström, 2019, MIT license) as class folders.

git clone https://github.com/marcusklasson/GroceryStoreDataset
python results/photos/folder.py GroceryStoreDataset/dataset grocery

The published folders are nested by kind of product (train/Fruit/Apple/Golden-Delicious/*.jpg): the innermost is the
class. Pictures get a shorter side of 256 pixels. They are saved as JPEG again, so that accuracies can differ in the
last digit.
"""

import sys
from collections import Counter
from pathlib import Path

from PIL import Image

SIDE = 256


def main(dataset: Path, out: Path) -> None:
    count: Counter[str] = Counter()
    for split in ("train", "val", "test"):
        for picture in sorted((dataset / split).rglob("*.jpg")):
            target = out / split / picture.parent.name / picture.name
            target.parent.mkdir(parents=True, exist_ok=True)
            with Image.open(picture) as image:
                scale = SIDE / min(image.size)
                size = (round(image.width * scale), round(image.height * scale))
                image.convert("RGB").resize(size, Image.Resampling.LANCZOS).save(target, quality=90)
            count[split] += 1
    classes = len({folder.name for folder in out.glob("*/*") if folder.is_dir()})
    print(f"{classes} classes in {out}: {', '.join(f'{split} {number}' for split, number in count.items())}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
