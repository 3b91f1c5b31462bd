"""Twenty classes of Tiny-ImageNet as folders of pictures.

python results/tiny-imagenet-20/folder.py tiny-imagenet-200.zip tiny-imagenet-20
"""

import sys
from collections import Counter
from pathlib import Path, PurePosixPath

from dign.data.archives import read_members

CLASSES = (  # noqa: SIM905
    "n01443537 n01784675 n02002724 n02123045 n02231487 n02410509 n02666196 n02808440 n02906734 n03014705 "
    "n03250847 n03544143 n03763968 n03930313 n04067472 n04254777 n04376876 n04532106 n07614500 n07768694"
).split()
"""Their names in WordNet: goldfish, centipede, black stork, and so on (words.txt in the archive)."""


def main(archive: Path, out: Path) -> None:
    wanted = ("/train/", "/val/images/", "/val/val_annotations.txt")
    members = dict(read_members(archive, lambda name: any(part in name for part in wanted)))
    annotations = next(data for name, data in members.items() if name.endswith("val_annotations.txt"))
    class_of = dict(line.split("\t")[:2] for line in annotations.decode().splitlines())
    count = Counter()
    for name, data in members.items():
        path = PurePosixPath(name)
        split, label = ("train", path.name.split("_")[0]) if "/train/" in name else ("test", class_of.get(path.name))
        if path.suffix == ".JPEG" and label in CLASSES:
            write(out / split / label / path.name, data)
            count[split] += 1
    print(f"{len(CLASSES)} classes in {out}: {count['train']} images to train with, {count['test']} to test")


def write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
