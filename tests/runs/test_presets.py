"""Presets: which one applies, and that what is given wins over it."""

import pytest

from dign.runs.config import RunConfig
from dign.runs.presets import PRESETS


@pytest.mark.parametrize("preset", PRESETS)
def test_options_win_over_presets(preset):
    values = {"data": "folder:x", "size": 128, "preset": preset, "epochs": 3}
    assert RunConfig.from_mapping(values).epochs == 3


def test_large_images_of_a_folder_are_photographs():
    def is_photos(**values):
        return RunConfig.from_mapping(values).scale > 0

    assert is_photos(data="folder:x", size=96) and is_photos(data="folder:x", size=224, method="augmix")
    assert not is_photos(data="folder:x", size=64) and not is_photos(data="cifar10", size=96)
    assert not is_photos(data="folder:x") and not is_photos(data="folder:x", size=128, preset="laptop")
    photos = RunConfig.from_mapping({"data": "folder:x", "size": 128})
    assert (photos.fit, photos.crop_fraction, photos.crop) == ("crop", 0.875, 0)
