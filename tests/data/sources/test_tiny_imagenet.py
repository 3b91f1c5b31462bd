import io
import zipfile

import numpy as np
import pytest
import torch
from PIL import Image

from dign.core.errors import UserError
from dign.core.progress import ignore_progress
from dign.data.cache import open_store
from dign.data.sources.tiny_imagenet import TinyImageNet

TINY = TinyImageNet()
WNIDS = ["n02124075", "n01443537", "n07749582"]  # not in order, as in the official wnids.txt


def jpeg(value: int, mode: str = "RGB") -> bytes:
    buffer = io.BytesIO()
    Image.new(mode, (64, 64), value if mode == "L" else (value, value, 255 - value)).save(buffer, "JPEG", quality=95)
    return buffer.getvalue()


@pytest.fixture
def layout(tmp_path):
    """The official layout with three classes of 4, 5 and 6 training images, and two validation images each."""
    folder = tmp_path / "given" / "tiny-imagenet-200"
    for number, wnid in enumerate(WNIDS):
        images = folder / "train" / wnid / "images"
        images.mkdir(parents=True)
        (folder / "train" / wnid / f"{wnid}_boxes.txt").write_text(f"{wnid}_0.JPEG\t0\t0\t62\t62\n")
        for index in range(4 + number):
            (images / f"{wnid}_{index}.JPEG").write_bytes(jpeg(60 * number, "L" if index == 0 else "RGB"))
    (folder / "val" / "images").mkdir(parents=True)
    lines = []
    for index in range(6):
        (folder / "val" / "images" / f"val_{index}.JPEG").write_bytes(jpeg(60 * (index % 3)))
        lines.append(f"val_{index}.JPEG\t{WNIDS[index % 3]}\t0\t32\t44\t62\n")
    (folder / "val" / "val_annotations.txt").write_text("".join(lines))
    (folder / "test" / "images").mkdir(parents=True)
    (folder / "test" / "images" / "test_0.JPEG").write_bytes(b"never read")
    (folder / "wnids.txt").write_text("\n".join(WNIDS) + "\n")
    (folder / "words.txt").write_text(
        "n00001740\tentity\nn01443537\tgoldfish, Carassius auratus\nn02124075\tEgyptian cat\nn07749582\tlemon\n"
    )
    return folder


def test_labels_follow_the_sorted_ids_and_names_the_words(tmp_path, layout):
    TINY.fetch(tmp_path / "root", ignore_progress, layout)
    found = TINY.read(tmp_path / "root", None, ignore_progress)
    assert found.classes == ("goldfish", "Egyptian cat", "lemon")
    assert open_store(tmp_path / "root" / "tiny-imagenet").info["wnids"] == sorted(WNIDS)
    assert found.train.labels.tolist() == [0] * 5 + [1] * 4 + [2] * 6
    # val_0 is the cat (class 1), val_1 the goldfish (class 0), val_2 the lemon, and round again
    assert found.test.labels.tolist() == [1, 0, 2, 1, 0, 2]
    # every class was painted in its own shade: 60 times its place in wnids.txt
    red = found.test.images[:, 0].float().mean((1, 2))
    assert torch.allclose(red, torch.tensor([0.0, 60, 120, 0, 60, 120]), atol=3)
    shades = found.train.images[:, 0].float().mean((1, 2))
    assert torch.allclose(shades, torch.tensor([60.0] * 5 + [0.0] * 4 + [120.0] * 6), atol=3)


def test_a_gray_jpeg_gets_three_equal_channels(tmp_path, layout):
    TINY.fetch(tmp_path / "root", ignore_progress, layout)
    first_lemon = TINY.read(tmp_path / "root", None, ignore_progress).train.images[9]
    assert torch.equal(first_lemon[0], first_lemon[2])


def test_folder_tar_and_zip_give_the_same(tmp_path, layout, tar_folder):
    with zipfile.ZipFile(tmp_path / "tiny-imagenet-200.zip", "w") as archive:
        for path in sorted(layout.rglob("*"), reverse=True):
            archive.write(path, path.relative_to(layout.parent))
    origins = [
        layout,
        tar_folder(tmp_path / "tiny-imagenet-200-part.tar.gz", layout),
        tmp_path / "tiny-imagenet-200.zip",
    ]
    arrays = []
    for number, origin in enumerate(origins):
        TINY.fetch(tmp_path / str(number), ignore_progress, origin)
        arrays.append(open_store(tmp_path / str(number) / "tiny-imagenet").info["arrays"])
    assert arrays[0] == arrays[1] == arrays[2]


def test_an_archive_in_the_cache_folder_is_picked_up(tmp_path, layout, tar_folder):
    (tmp_path / "root").mkdir()
    tar_folder(tmp_path / "root" / "tiny-imagenet-200-part.tar.gz", layout)
    assert len(TINY.read(tmp_path / "root", None, ignore_progress).train) == 15


def test_everything_that_is_missing_or_wrong_is_named(tmp_path, layout):
    annotations = layout / "val" / "val_annotations.txt"
    lines = annotations.read_text()
    cases = [
        (annotations, lines.replace("n07749582", "n99999999", 1), "val_2.JPEG a class outside"),
        (annotations, lines + "val_77.JPEG\tn01443537\t0\t0\t1\t1\n", "val_77.JPEG of val_annotations.txt is missing"),
        (annotations, "", "names no images"),
        (annotations, None, "lacks val/val_annotations.txt"),
        (layout / "wnids.txt", "n01443537\nn02124075\n", "train/n07749582 is not one of the classes"),
        (layout / "wnids.txt", "\n".join([*WNIDS, "n09999999"]), "class folder train/n09999999 contains no images"),
        (
            layout / "train" / WNIDS[0] / "images" / f"{WNIDS[0]}_2.JPEG",
            jpeg(9)[:300],
            f"{WNIDS[0]}_2.JPEG cannot be read",
        ),
    ]
    for file, content, sentence in cases:
        good = file.read_bytes()
        if content is None:
            file.unlink()
        else:
            file.write_bytes(content if isinstance(content, bytes) else content.encode())
        with pytest.raises(UserError, match=sentence):
            TINY.fetch(tmp_path / "root", ignore_progress, layout)
        file.write_bytes(good)
        assert [path.name for path in (tmp_path / "root").iterdir()] == [".tiny-imagenet.lock"]


def test_an_image_of_another_size_is_named(tmp_path, layout):
    Image.fromarray(np.zeros((32, 64, 3), np.uint8)).save(layout / "val" / "images" / "val_3.JPEG")
    with pytest.raises(UserError, match=r"val_3\.JPEG cannot be read \(it is 32x64, not 64x64\)"):
        TINY.fetch(tmp_path / "root", ignore_progress, layout)


def test_two_classes_of_the_same_word_are_told_apart(tmp_path, layout):
    (layout / "words.txt").write_text("n01443537\tcrane, bird\nn02124075\tcrane, machine\nn07749582\tlemon\n")
    TINY.fetch(tmp_path / "root", ignore_progress, layout)
    assert TINY.read(tmp_path / "root", None, ignore_progress).classes == (
        "crane (n01443537)",
        "crane (n02124075)",
        "lemon",
    )
