"""The classes of a Tiny-ImageNet archive that have all their 500 training images, as folders of pictures.

python results/tiny-imagenet-20/folder.py tiny-imagenet-200-part.tar.gz tiny-imagenet-20
"""

import sys
from collections import Counter
from pathlib import Path, PurePosixPath

from dign.data.archives import read_members

COMPLETE = 500


def main(archive: Path, out: Path) -> None:
    wanted = ("/train/", "/val/images/", "/val/val_annotations.txt")
    members = dict(read_members(archive, lambda name: any(part in name for part in wanted)))
    training = [PurePosixPath(name) for name in members if "/train/" in name and name.endswith(".JPEG")]
    count = Counter(path.parts[-3] for path in training)
    complete = {wnid for wnid, images in count.items() if images == COMPLETE}
    for path in training:
        if path.parts[-3] in complete:
            write(out / "train" / path.parts[-3] / path.name, members[str(path)])
    annotations = next(data for name, data in members.items() if name.endswith("val_annotations.txt"))
    class_of = dict(line.split("\t")[:2] for line in annotations.decode().splitlines())
    for name, data in members.items():
        picture = PurePosixPath(name).name
        if "/val/images/" in name and class_of.get(picture) in complete:
            write(out / "test" / class_of[picture] / picture, data)
    print(f"{len(complete)} classes in {out}")


def write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
