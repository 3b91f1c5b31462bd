"""Which images a model has not been trained on: by digests of their pixels, wherever they are."""

import json
import shutil

import pytest
import torch

from dign.core.errors import UserError
from dign.data import load
from dign.publish.hub import save_hub_folder
from dign.runs.held_out import describe_seen, find_seen, find_test_images, held_out_for_hub, held_out_for_run
from dign.runs.hub_config import read_hub_config
from dign.runs.seen_images import digest_images
from dign.training.loop import train


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    settings = {"data": "digits", "size": 8, "epochs": 1, "batch_size": 256, "method": "standard"}
    return train(settings, tmp_path_factory.mktemp("held") / "run", quiet=True)


@pytest.fixture(scope="module")
def hub(run, tmp_path_factory):
    return save_hub_folder(run, tmp_path_factory.mktemp("hub") / "model")


def test_a_run_s_held_out_images_are_its_validation_images(run):
    held = held_out_for_run(run)
    assert torch.equal(held.split.images, run.data().validation.images) and held.left_out == 1293


def test_a_hub_folder_knows_what_its_model_has_seen(run, hub):
    assert describe_seen(run) == {"images": 1293, "validation": 0.1, "validation_seed": 0}
    assert read_hub_config(hub)["seen"] == describe_seen(run)
    assert (
        "Trained on 1293 images of digits; 10 % of the training images were held out."
        in (hub / "README.md").read_text()
    )
    held = held_out_for_hub(hub, "digits")
    assert held.left_out == 1293
    assert set(digest_images(held.split.images)) == set(digest_images(run.data().validation.images))


def test_a_card_that_does_not_say_is_refused(hub, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(hub, folder)
    config = read_hub_config(folder) | {"seen": None}
    with pytest.raises(UserError, match="does not say which images of digits"):
        find_seen(folder, config)


def test_other_classes_are_refused(hub, tmp_path):
    from PIL import Image

    for name in ("cat", "dog"):
        (tmp_path / name).mkdir()
        for index in range(4):
            Image.new("RGB", (8, 8), (40 * index, 0, 0)).save(tmp_path / name / f"{index}.png")
    with pytest.raises(UserError, match="knows the classes"):
        held_out_for_hub(hub, f"folder:{tmp_path}")


def test_copies_of_training_images_in_a_folder_are_left_out(run, hub, tmp_path):
    from PIL import Image

    data = load("digits", size=8)
    parts = {"seen": data.train.images, "new": data.test.images}
    for label in range(10):
        (tmp_path / str(label)).mkdir()
        for kind, labels in (("seen", data.train.labels), ("new", data.test.labels)):
            index = int((labels == label).nonzero()[0])
            pixels = parts[kind][index].permute(1, 2, 0).numpy()
            Image.fromarray(pixels).save(tmp_path / str(label) / f"{kind}.png")
    held = held_out_for_hub(hub, f"folder:{tmp_path}")
    assert len(held.split) == 10 and held.left_out == 10
    assert len(held_out_for_run(run, f"folder:{tmp_path}").split) == 10


def test_a_hub_folder_is_measured_on_test_images_that_it_has_not_seen(run, hub, tmp_path):
    from PIL import Image

    assert torch.equal(find_test_images(hub).split.images, run.data().test.images)
    data = load("digits", size=8)
    for split, digit in [("train", digit) for digit in range(10)] + [("test", digit) for digit in range(10)]:
        folder = tmp_path / split / str(digit)
        folder.mkdir(parents=True)
        for name, part in (("seen", run.data().train), ("new", data.test)):
            image = part.images[int((part.labels == digit).nonzero()[0])]
            Image.fromarray(image.permute(1, 2, 0).numpy()).save(folder / f"{name}.png")
    found = find_test_images(hub, f"folder:{tmp_path}")
    assert (len(found.split), found.left_out) == (10, 10)


def test_a_hub_folder_of_own_images_must_be_told_which_to_measure(hub, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(hub, folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "data": "folder:photos"}))
    with pytest.raises(UserError, match="name images with `data`"):
        find_test_images(folder)
