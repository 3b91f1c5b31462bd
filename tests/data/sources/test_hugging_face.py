"""Hugging Face data sets on disk: Arrow and Parquet files, with the features in their schema."""

import io
import json

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from PIL import Image

import dign.data
from dign.core.errors import UserError
from dign.core.progress import ignore_progress

FEATURES = {"image": {"_type": "Image"}, "label": {"names": ["cat", "dog"], "_type": "ClassLabel"}}


def png(color):
    buffer = io.BytesIO()
    Image.new("RGB", (20, 12), color).save(buffer, "PNG")
    return buffer.getvalue()


def table(count, first=0, features=FEATURES, **change):
    images = [{"bytes": png((first + number, 0, 0)), "path": None} for number in range(count)]
    columns = {"image": images, "label": [number % 2 for number in range(count)], **change}
    made = pyarrow.table(columns)
    described = json.dumps({"info": {"features": features}}).encode()
    return made.replace_schema_metadata({b"huggingface": described})


def save_arrow(path, data, batch=3):
    path.parent.mkdir(parents=True, exist_ok=True)
    with pyarrow.OSFile(str(path), "wb") as file, pyarrow.ipc.new_stream(file, data.schema) as writer:
        writer.write_table(data, max_chunksize=batch)


def load(folder, tmp_path, **options):
    options = {"size": 8, "validation": 0, **options}
    return dign.data.load(f"hf:{folder}", root=tmp_path / "root", progress=ignore_progress, **options)


def reds(split):
    return split.images[:, 0, 4, 4].tolist()


@pytest.mark.parametrize("cache", ["on", "off"])
def test_a_saved_data_set_is_read_where_it_is(tmp_path, cache):
    folder = tmp_path / "saved"
    save_arrow(folder / "train" / "data-00000-of-00002.arrow", table(7))
    save_arrow(folder / "train" / "data-00001-of-00002.arrow", table(4, first=7))
    save_arrow(folder / "test" / "data-00000-of-00001.arrow", table(3, first=100))
    (folder / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    data = load(folder, tmp_path, cache=cache)
    assert data.classes == ("cat", "dog")
    assert reds(data.train) == list(range(11)) and reds(data.test) == [100, 101, 102]
    assert data.train.labels.tolist() == [0, 1, 0, 1, 0, 1, 0, 0, 1, 0, 1]
    assert data.train.pictures.path(0).suffix == ".arrow", "nothing was copied"


def test_parquet_files_of_the_hub_are_copied_once(tmp_path):
    folder = tmp_path / "hub"
    (folder / "data").mkdir(parents=True)
    pyarrow.parquet.write_table(table(10), folder / "data" / "train-00000-of-00001.parquet", compression="snappy")
    pyarrow.parquet.write_table(table(3, first=50), folder / "data" / "validation-00000-of-00001.parquet")
    data = load(folder, tmp_path, cache="off")
    assert reds(data.train) == list(range(10)) and reds(data.test) == [50, 51, 52]
    copied = data.train.pictures.path(0)
    before = copied.stat().st_mtime_ns
    assert reds(load(folder, tmp_path, cache="off").train) == list(range(10))
    assert copied.suffix == ".bin" and copied.stat().st_mtime_ns == before
    copied.unlink()  # as `dign data clear` does
    assert reds(load(folder, tmp_path, cache="off").train) == list(range(10))


def test_a_table_is_indexed_once(tmp_path, monkeypatch):
    folder = tmp_path / "saved"
    folder.mkdir()
    (folder / "dataset_info.json").write_text("{}")
    save_arrow(folder / "data-00000-of-00001.arrow", table(10))
    first = load(folder, tmp_path, cache="off")

    def fail(*args):
        raise AssertionError("it was indexed again")

    monkeypatch.setattr("dign.data.sources.hugging_face._index_arrow", fail)
    again = load(folder, tmp_path, cache="off")
    assert reds(again.train) == reds(first.train) and again.classes == first.classes


def test_a_single_split_is_cut(tmp_path):
    save_arrow(tmp_path / "saved" / "data-00000-of-00001.arrow", table(20))
    (tmp_path / "saved" / "dataset_info.json").write_text("{}")
    data = load(tmp_path / "saved", tmp_path)
    assert len(data.train) == 16 and sorted(reds(data.train) + reds(data.test)) == list(range(20))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"features": {"image": {"_type": "Image"}}}, "1 columns of pictures and 0 of classes"),
        ({"label": [0, 1, 2, 0]}, "labels outside of its 2 classes"),
        ({"image": [{"bytes": None, "path": "a.jpg"}] * 4}, "holds the paths of pictures"),
    ],
)
def test_what_is_wrong_with_a_table_is_said(tmp_path, change, message):
    if "image" in change:
        kind = pyarrow.struct({"bytes": pyarrow.binary(), "path": pyarrow.string()})
        change = {"image": pyarrow.array(change["image"], kind)}
    save_arrow(tmp_path / "saved" / "data-00000-of-00001.arrow", table(4, **change))
    (tmp_path / "saved" / "dataset_info.json").write_text("{}")
    with pytest.raises(UserError, match=message):
        load(tmp_path / "saved", tmp_path)


def test_a_damaged_or_another_folder_is_refused(tmp_path):
    with pytest.raises(UserError, match="There is no folder"):
        load(tmp_path / "nowhere", tmp_path)
    (tmp_path / "saved").mkdir()
    with pytest.raises(UserError, match="is not a data set of Hugging Face"):
        load(tmp_path / "saved", tmp_path)
    path = tmp_path / "saved" / "train-0.parquet"
    pyarrow.parquet.write_table(table(4), path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(UserError, match=r"train-0\.parquet cannot be read"):
        load(tmp_path / "saved", tmp_path)
    save_arrow(tmp_path / "other" / "data-0.arrow", table(4))
    (tmp_path / "other" / "dataset_info.json").write_text("{}")
    raw = (tmp_path / "other" / "data-0.arrow").read_bytes()
    rng = np.random.default_rng(0)
    for _ in range(60):  # damage anywhere gives data or one sentence, never another error
        broken = bytearray(raw[: rng.integers(1, len(raw) + 1)])
        broken[rng.integers(len(broken))] ^= int(rng.integers(1, 256))
        (tmp_path / "other" / "data-0.arrow").write_bytes(broken)
        try:
            load(tmp_path / "other", tmp_path, cache="off")
        except UserError:
            continue
