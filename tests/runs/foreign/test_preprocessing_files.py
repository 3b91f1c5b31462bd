"""`preprocessor_config.json` of the usual families of models."""

import json

import pytest

from dign.core.errors import UserError
from dign.models.preprocessing import Preprocessing
from dign.runs.foreign.preprocessing_files import read_exported, read_preprocessing

IMAGENET = {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def read(folder, **config):
    (folder / "preprocessor_config.json").write_text(json.dumps(config))
    return read_preprocessing(folder)


def test_a_folder_without_the_file_says_nothing(tmp_path):
    assert read_preprocessing(tmp_path) == Preprocessing()


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        # ViT: both sides at once, the aspect ratio goes
        (
            {"size": {"height": 224, "width": 224}, "resample": 2, "image_mean": [0.5] * 3, "image_std": [0.5] * 3},
            Preprocessing(224, (0.5,) * 3, (0.5,) * 3, "squash", None, "bilinear"),
        ),
        # ConvNeXt: a shorter side and a crop fraction
        (
            {**IMAGENET, "size": {"shortest_edge": 224}, "crop_pct": 0.875, "resample": 3},
            Preprocessing(224, MEAN, STD, "crop", 0.875, "bicubic"),
        ),
        # DeiT: resize, then crop
        (
            {
                **IMAGENET,
                "size": 256,
                "do_center_crop": True,
                "crop_size": {"height": 224, "width": 224},
                "resample": 3,
            },
            Preprocessing(224, MEAN, STD, "crop", 0.875, "bicubic"),
        ),
        # MobileViT: no normalization at all
        (
            {"do_normalize": False, "size": {"shortest_edge": 288}, "do_center_crop": True, "crop_size": 256},
            Preprocessing(256, (0.0,) * 3, (1.0,) * 3, "crop", 0.8889, "bilinear"),
        ),
        # images in [-1, 1]: x / 127.5 - 1
        (
            {"rescale_factor": 1 / 127.5, "rescale_offset": True, "do_normalize": False, "size": {"shortest_edge": 8}},
            Preprocessing(8, (0.5,) * 3, (0.5,) * 3, "crop", 1.0, "bilinear"),
        ),
    ],
)
def test_what_the_file_says_is_read(tmp_path, config, expected):
    assert read(tmp_path, **config) == expected


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"size": {"height": 4, "width": 8}}, "images of 4 x 8 pixels, where squares are expected"),
        ({"image_mean": [0.5], "image_std": [0.5]}, "1 channels, where 3 are expected"),
        ({"image_mean": [0.5] * 3, "image_std": [0, 0, 0]}, "std must be three numbers above 0"),
        ({"size": {"shortest_edge": -3}}, "size must be from 1 to 4096"),
        ({"rescale_factor": 0, "do_normalize": False}, "division by zero"),
        ({"image_mean": ["a", "b", "c"]}, "could not convert"),
    ],
)
def test_what_cannot_be_done_is_named(tmp_path, config, message):
    with pytest.raises(UserError, match=f"preprocessor_config.json cannot be used: .*{message}"):
        read(tmp_path, **config)


def test_what_export_wrote_is_read_and_other_files_say_nothing():
    metadata = {
        "dign": "0.1",
        "image_size": "[160, 160]",
        "framing": '{"fit": "crop", "crop_fraction": 0.875, "interpolation": "bilinear"}',
    }
    expected = Preprocessing(size=160, fit="crop", crop_fraction=0.875, interpolation="bilinear")
    assert read_exported(metadata) == expected
    assert read_exported({**metadata, "image_size": "[160, 80]"}).size is None
    assert read_exported({"framing": "wood"}) == Preprocessing()
    with pytest.raises(UserError, match="what `dign export` wrote into the file cannot be used"):
        read_exported({**metadata, "framing": "wood"})
