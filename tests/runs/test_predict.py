"""Predictions for files: the pixels are those of training, and stability is a fraction that can be worked out."""

import io
import math
import os

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

import dign.data
from dign.cli.predict import _lines
from dign.core.errors import UserError
from dign.methods import Standard
from dign.runs.classifier import Classifier
from dign.runs.predict import image_files, predict_files, read_images, stability


class Brightness(nn.Module):
    """Logits (0, 100 (mean - threshold)): class 1 where the image is bright."""

    def __init__(self, threshold):
        super().__init__()
        self.threshold = threshold

    def forward(self, x):
        bright = 100 * (x.mean(dim=(1, 2, 3)) - self.threshold)
        return torch.stack([torch.zeros_like(bright), bright], dim=1)


def classifier(threshold=0.5, size=(4, 4)):
    return Classifier("test", Brightness(threshold), Standard(), ["dark", "bright"], size)


def save(path, level, size=(6, 9)):
    Image.fromarray(np.full((*size, 3), level, dtype=np.uint8)).save(path)
    return path


def test_stability_is_the_probability_that_noise_does_not_cross_the_threshold():
    """The mean of 48 pixels under N(0, s^2) noise is N(m, s^2/48): P(mean > threshold) is a normal tail."""
    image, sigma = torch.full((3, 4, 4), 0.5), 0.1
    for distance in (0.0, 0.01, 0.02):
        expected = 0.5 * (1 + math.erf(distance / (sigma / math.sqrt(48)) / math.sqrt(2)))
        found = stability(classifier(0.5 - distance), image, 1, sigma, draws=4000)
        assert found == pytest.approx(expected, abs=4 * math.sqrt(0.25 / 4000))


def test_no_noise_changes_nothing_and_draws_need_not_fill_a_batch():
    image = torch.full((3, 4, 4), 0.6)
    assert stability(classifier(), image, 1, 0.0, draws=7) == 1.0
    assert stability(classifier(), image, 0, 0.0, draws=7) == 0.0
    counted = 51 * stability(classifier(0.6), image, 1, 0.3, draws=51)
    assert 0 < counted < 51 and counted == pytest.approx(round(counted))


def test_noise_is_clipped_as_an_image_file_would_be():
    """White stays on the bright side of its clipped mean 1 - sigma/sqrt(2 pi) only below it."""
    white, sigma = torch.ones(3, 32, 32), 0.2
    clipped_mean = 1 - sigma / math.sqrt(2 * math.pi)
    assert stability(classifier(clipped_mean - 0.02, (32, 32)), white, 1, sigma) == 1.0
    assert stability(classifier(clipped_mean + 0.02, (32, 32)), white, 1, sigma) == 0.0


def test_an_images_result_does_not_depend_on_the_others(tmp_path):
    files = [save(tmp_path / f"{level}.png", level) for level in (120, 128, 135)]
    together = list(predict_files(classifier(), files, draws=60))
    alone = [next(predict_files(classifier(), [file], draws=60)) for file in files]
    assert together == alone
    assert [each.label for each in together] == ["dark", "bright", "bright"]
    assert together[0].confidence == pytest.approx(1 / (1 + math.exp(100 * (120 / 255 - 0.5))), rel=1e-5)
    assert list(together[0].top) == ["dark", "bright"] and sum(together[0].top.values()) == pytest.approx(1)
    assert list(together[0].stability) == ["0.05", "0.1", "0.2", "0.3"]


def test_files_are_read_as_a_folder_of_training_images_is(tmp_path):
    random = np.random.default_rng(0)
    for name in ("a", "b"):
        for split in ("train", "test"):
            (tmp_path / "photos" / split / name).mkdir(parents=True)
            for index in range(3):
                pixels = random.integers(0, 256, (40 + 9 * index, 61, 3), dtype=np.uint8)
                Image.fromarray(pixels).save(tmp_path / "photos" / split / name / f"{index}.jpg")
    data = dign.data.load(f"folder:{tmp_path / 'photos'}", size=16, validation=0, root=tmp_path / "cache")
    files = image_files([str(tmp_path / "photos" / "test")])
    assert len(files) == 6 and torch.equal(read_images(files, (16, 16)), data.test.images)


def test_a_shape_that_is_no_square_takes_the_middle(tmp_path):
    pixels = np.zeros((8, 30, 3), dtype=np.uint8)
    pixels[:, 2:28] = 200  # the middle 16 columns, and those that a bicubic filter looks at beside them
    Image.fromarray(pixels).save(tmp_path / "wide.png")
    assert (read_images([tmp_path / "wide.png"], (4, 8)) == 200).all()
    Image.fromarray(pixels).save(tmp_path / "fits.png")
    assert torch.equal(read_images([tmp_path / "fits.png"], (8, 30))[0], torch.from_numpy(pixels).permute(2, 0, 1))


def test_what_cannot_be_read_is_named(tmp_path):
    (tmp_path / "broken.jpg").write_bytes(b"\xff\xd8\xff nonsense")
    with pytest.raises(UserError, match=r"broken\.jpg cannot be read: "):
        read_images([tmp_path / "broken.jpg"], (8, 8))
    with pytest.raises(UserError, match=r"nowhere\.png cannot be read: there is no such file"):
        read_images([tmp_path / "nowhere.png"], (8, 8))
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="holds no images"):
        image_files([str(tmp_path / "empty")])


def test_hidden_folders_are_passed_over_as_in_training(tmp_path):
    (tmp_path / ".thumbnails").mkdir()
    save(tmp_path / ".thumbnails" / "small.png", 3)
    assert image_files([str(tmp_path), str(save(tmp_path / "a.png", 3))]) == [tmp_path / "a.png"] * 2


def test_names_on_standard_input_may_be_any_bytes(tmp_path):
    stream = io.TextIOWrapper(io.BytesIO(b"caf\xe9.png\r\n\na b.png\n"), encoding="utf-8", errors="strict")
    assert [os.fsencode(name) for name in _lines(stream)] == [b"caf\xe9.png", b"a b.png"]
    assert _lines(io.StringIO("a.png\n")) == ["a.png"]
