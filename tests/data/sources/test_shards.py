"""WebDataset shards: pictures and labels are found in tar files without unpacking them."""

import io
import json
import tarfile

import pytest
import torch
from PIL import Image

import dign.data
from dign.core.errors import UserError
from dign.core.progress import ignore_progress
from dign.data.sources.shards import expand_braces, find_shards


def png(color):
    buffer = io.BytesIO()
    Image.new("RGB", (20, 12), color).save(buffer, "PNG")
    return buffer.getvalue()


def write_shard(path, members):
    with tarfile.open(path, "w") as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))


def numbered(first, count, label):
    members = {}
    for number in range(first, first + count):
        members[f"{number:04d}.png"] = png((number, 50 * label, 0))
        members[f"{number:04d}.cls"] = str(label).encode()
    return members


def load(pattern, tmp_path, **options):
    options = {"size": 8, "validation": 0, **options}
    return dign.data.load(f"wds:{pattern}", root=tmp_path / "root", progress=ignore_progress, **options)


def colors(split):
    return split.images[:, :2, 4, 4].tolist()


@pytest.mark.parametrize("cache", ["on", "off"])
def test_shards_of_splits_keep_their_pictures_and_numbers(tmp_path, cache):
    write_shard(tmp_path / "photos-train-000.tar", numbered(0, 2, 0))
    write_shard(tmp_path / "photos-train-001.tar", numbered(2, 2, 2))
    write_shard(tmp_path / "photos-test-000.tar", numbered(9, 1, 2))
    (tmp_path / "classes.txt").write_text("cat\ndog\nbird\n")
    data = load(tmp_path / "photos-*.tar", tmp_path, cache=cache)
    assert data.classes == ("cat", "dog", "bird")
    assert data.train.labels.tolist() == [0, 0, 2, 2] and colors(data.train) == [[0, 0], [1, 0], [2, 100], [3, 100]]
    assert data.test.labels.tolist() == [2] and colors(data.test) == [[9, 100]]


def test_words_json_and_folders_name_classes_and_a_test_split_is_cut(tmp_path):
    members = {}
    for number in range(10):
        members |= {f"w{number}.jpg": png((1, 1, 1)), f"w{number}.cls": b"dog\n"}
        members |= {f"j{number}.png": png((2, 2, 2)), f"j{number}.json": json.dumps({"label": "cat"}).encode()}
        members |= {f"bird/f{number}.PNG": png((3, 3, 3)), f"bird/f{number}.txt": b"a caption"}
    write_shard(tmp_path / "all.tar", members)
    data = load(tmp_path / "all.tar", tmp_path)
    assert data.classes == ("bird", "cat", "dog")
    assert data.train.labels.bincount().tolist() == [8, 8, 8] and data.test.labels.bincount().tolist() == [2, 2, 2]
    expected = torch.tensor([3, 2, 1], dtype=torch.uint8)[data.train.labels]
    assert torch.equal(data.train.images[:, 0, 4, 4], expected)


def test_random_crops_come_out_of_shards(tmp_path):
    write_shard(tmp_path / "all.tar", numbered(0, 5, 0) | numbered(5, 5, 1))
    pictures = load(tmp_path / "all.tar", tmp_path).train.pictures
    assert Image.open(io.BytesIO(pictures.read(0))).size == (20, 12)


def test_braces_are_expanded_as_in_a_shell(tmp_path):
    assert list(expand_braces("a{0..2}b")) == ["a0b", "a1b", "a2b"]
    assert list(expand_braces("{x,y}-{09..10}")) == ["x-09", "x-10", "y-09", "y-10"]
    with pytest.raises(UserError, match="are none, or more than"):
        list(expand_braces("{5..1}"))
    for number in range(2):
        write_shard(tmp_path / f"s{number}.tar", {})
    assert len(find_shards(f"{tmp_path}/s{{0..1}}.tar")) == 2
    with pytest.raises(UserError, match=r"There is no shard .*s2\.tar"):
        find_shards(f"{tmp_path}/s{{0..2}}.tar")


def test_what_is_wrong_with_shards_is_said(tmp_path):
    write_shard(tmp_path / "bare.tar", {"a.png": png(0)})
    with pytest.raises(UserError, match=r"a in .*bare\.tar has no label"):
        load(tmp_path / "bare.tar", tmp_path)
    write_shard(tmp_path / "empty.tar", {"notes.txt": b""})
    with pytest.raises(UserError, match="contain no pictures"):
        load(tmp_path / "empty.tar", tmp_path)
    (tmp_path / "broken.tar").write_bytes(b"nothing like a tar file" * 100)
    with pytest.raises(UserError, match=r"broken\.tar is damaged"):
        load(tmp_path / "broken.tar", tmp_path)
    write_shard(tmp_path / "cut.tar", numbered(0, 3, 0))
    raw = (tmp_path / "cut.tar").read_bytes()
    (tmp_path / "cut.tar").write_bytes(raw[: 512 + 40])
    with pytest.raises(UserError, match=r"cut\.tar is damaged"):
        load(tmp_path / "cut.tar", tmp_path)
    write_shard(tmp_path / "x-train.tar", numbered(0, 3, 0) | numbered(3, 3, 1))
    write_shard(tmp_path / "x-test.tar", numbered(0, 3, 5))
    with pytest.raises(UserError, match="have no pictures of 5, but others have"):
        load(tmp_path / "x-*.tar", tmp_path)
    (tmp_path / "z.tar.gz").write_bytes(b"")
    with pytest.raises(UserError, match=r"z\.tar\.gz is not a shard"):
        load(tmp_path / "z.tar.gz", tmp_path)


def test_an_unreadable_member_is_named_by_its_place_and_can_be_skipped(tmp_path):
    members = numbered(0, 5, 0) | numbered(5, 5, 1)
    members["0003.png"] = b"nothing"
    write_shard(tmp_path / "all.tar", members)
    with pytest.raises(UserError, match=r"/all\.tar \(at byte \d+\) cannot be read"):
        load(tmp_path / "all.tar", tmp_path)
    assert len(load(tmp_path / "all.tar", tmp_path, skip_unreadable=True).skipped) == 1


def test_pickles_and_links_in_a_shard_are_left_alone(tmp_path):
    path = tmp_path / "all.tar"
    write_shard(path, numbered(0, 5, 0) | numbered(5, 5, 1) | {"0001.pyd": b"cos\nsystem\n(S'x'\ntR."})
    with tarfile.open(path, "a") as archive:
        link = tarfile.TarInfo("evil.png")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    data = load(path, tmp_path)
    assert len(data.train) + len(data.test) == 10
