"""Which images a model has not been trained on: by digests of their pixels, wherever they are."""

import json
import shutil

import pytest
import torch

from dign.core.errors import UserError
from dign.data import load
from dign.evaluation.conditions import Conditions
from dign.evaluation.results import Results
from dign.evaluation.subjects import evaluate_run
from dign.publish.hub import save_hub_folder
from dign.runs.calibrate import calibrate_model
from dign.runs.classifier import load_model
from dign.runs.folder import load_run
from dign.runs.held_out import (
    _digest_hub_test,
    describe_seen,
    find_seen,
    find_test_images,
    held_out_for_hub,
    held_out_for_run,
    leave_out_seen,
    seen_by_init,
)
from dign.runs.hub_config import read_hub_config
from dign.runs.seen_images import digest_images, read_calibration_images
from dign.training.train import train


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
    parts = {"seen": data.train.images, "new": data.validation.images}
    for label in range(10):
        (tmp_path / str(label)).mkdir()
        for kind, labels in (("seen", data.train.labels), ("new", data.validation.labels)):
            index = int((labels == label).nonzero()[0])
            pixels = parts[kind][index].permute(1, 2, 0).numpy()
            Image.fromarray(pixels).save(tmp_path / str(label) / f"{kind}.png")
    held = held_out_for_hub(hub, f"folder:{tmp_path}")
    assert len(held.split) == 10 and held.left_out == 10
    assert len(held_out_for_run(run, f"folder:{tmp_path}").split) == 10


def write_images(folder, images, labels):
    from PIL import Image

    for index, (image, label) in enumerate(zip(images, labels.tolist(), strict=True)):
        (folder / str(label)).mkdir(parents=True, exist_ok=True)
        Image.fromarray(image.permute(1, 2, 0).numpy()).save(folder / str(label) / f"{index}.png")
    return f"folder:{folder}"


def test_test_images_of_a_named_data_set_are_known_in_a_folder(run, hub, tmp_path):
    data = run.data()
    tests = write_images(tmp_path / "tests", data.test.images, data.test.labels)
    for model, held_out in ((run, held_out_for_run), (hub, held_out_for_hub)):
        with pytest.raises(
            UserError, match=r"359 of the 359 images of folder:tests are test images of .*other labeled"
        ):
            held_out(model, tests)
    images = torch.cat([data.test.images, data.validation.images])
    mixed = write_images(tmp_path / "mixed", images, torch.cat([data.test.labels, data.validation.labels]))
    for model, held_out in ((run, held_out_for_run), (hub, held_out_for_hub)):
        held = held_out(model, mixed)
        assert set(digest_images(held.split.images)) == set(digest_images(data.validation.images))
        assert held.left_out == 359
    images = torch.cat([data.test.images[:50], data.train.images[:30]])
    known = write_images(tmp_path / "known", images, torch.arange(80) % 10)
    with pytest.raises(UserError, match=r"50 of the 80 images .*, and it was trained on the other 30: calibrate"):
        held_out_for_run(run, known)


def test_nothing_is_downloaded_to_know_test_images(monkeypatch, tmp_path):
    monkeypatch.setattr("dign.data.download.download_file", lambda *given: pytest.fail("it is downloaded"))
    config = {"data": "cifar10", "image_size": [32, 32], "framing": {}}
    for data in ("cifar10", "folder:photos"):
        assert _digest_hub_test(tmp_path, {**config, "data": data}) == frozenset()


def test_a_run_on_a_named_data_set_is_not_measured_on_images_that_it_was_calibrated_on(run, tmp_path):
    """Inverted digits, which it has not seen."""
    copy = tmp_path / "run"
    shutil.copytree(run.path, copy)
    images, labels = 255 - run.data().test.images[:120], run.data().test.labels[:120]
    more = write_images(tmp_path / "more", images[:100], labels[:100])
    assert calibrate_model(copy, more).calibrator.images == 100
    fog, calibrated = Conditions(("fog",), (1,)), load_run(copy)
    with pytest.raises(UserError, match="calibrated on all 100 images"):
        evaluate_run(calibrated, fog, data=more)
    beyond = write_images(tmp_path / "beyond", images, labels)
    results = evaluate_run(calibrated, fog, data=beyond)
    assert (results.evaluation.images, results.evaluation.left_out) == (20, 100)
    hub = save_hub_folder(calibrated, tmp_path / "hub")
    assert read_calibration_images(hub) == read_calibration_images(copy) == set(digest_images(images[:100]))


def test_a_hub_folder_is_not_measured_on_images_that_it_was_calibrated_on(run, hub, tmp_path, dign_command):
    model = tmp_path / "model"
    shutil.copytree(hub, model)
    images, labels = 255 - run.data().test.images, run.data().test.labels
    name = write_images(tmp_path / "all", images, labels)
    data = load(name, size=8)
    part = write_images(tmp_path / "part", data.test.images[:30], torch.arange(30) % 10)
    assert leave_out_seen(model, data, "test") == (data, 0)
    calibrate_model(f"hub:{model}", part)
    left, count = leave_out_seen(model, data, "test")
    assert count == 30 and torch.equal(left.test.images, data.test.images[30:]) and left.train is data.train
    assert find_test_images(model, name).left_out == 30
    words = (
        "--model",
        f"hub:{model}",
        "--data",
        name,
        "--size",
        8,
        "--only",
        "fog",
        "--severity",
        1,
        "--device",
        "cpu",
    )
    code, _, err = dign_command("evaluate", *words, "--out", tmp_path / "out")
    assert code == 0 and "30 images are left out, since the model was trained or calibrated on them" in err
    assert Results.load(tmp_path / "out").evaluation.left_out == 30
    code, _, err = dign_command("evaluate", *words[:-6], "--benchmark", tmp_path, "--out", tmp_path / "out")
    assert code == 2 and "30 images of folder:all are left out" in err and "measure without it" in err
    calibrate_model(f"hub:{model}", name)
    code, _, err = dign_command("evaluate", *words, "--out", tmp_path / "out")
    assert code == 2 and f"calibrated on all {len(data.test)} test images of folder:all" in err and "--data" in err


def test_a_kill_while_a_model_is_calibrated_forgets_no_image(run, tmp_path, monkeypatch):
    def die(*given):
        raise KeyboardInterrupt

    copy = tmp_path / "run"
    shutil.copytree(run.path, copy)
    before = (copy / "calibration.json").read_text()
    more = write_images(tmp_path / "more", 255 - run.data().test.images[:50], run.data().test.labels[:50])
    monkeypatch.setattr("dign.runs.calibrate.write_calibrator", die)
    with pytest.raises(KeyboardInterrupt):
        calibrate_model(copy, more)
    assert len(read_calibration_images(copy)) == 50 and (copy / "calibration.json").read_text() == before


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


def test_a_model_that_starts_from_one_that_saw_its_validation_images_is_not_calibrated_on_them(tmp_path):
    settings = {"data": "digits", "size": 8, "epochs": 1, "batch_size": 256, "method": "standard", "track": "none"}
    first = train({**settings, "validation": 0.0}, tmp_path / "first", quiet=True)
    for start in (first.path, save_hub_folder(first, tmp_path / "hub")):
        tuned = train({**settings, "init": str(start)}, tmp_path / f"from-{start.name}", quiet=True)
        assert seen_by_init(tuned) == 145 and load_model(tuned.path).calibrator is None
        assert any("145 of 145 validation images were training images of" in note for note in tuned.info["notes"])
        with pytest.raises(UserError, match="145 of the validation images"):
            held_out_for_run(tuned)
        copies = write_images(
            tmp_path / f"copies-{start.name}", tuned.data().validation.images, tuned.data().validation.labels
        )
        with pytest.raises(UserError, match="trained on all 145 training images of folder:copies"):
            held_out_for_run(tuned, copies)
        with pytest.raises(UserError, match="145 of the 145 validation images"):
            evaluate_run(tuned, temperature=True)
        again = save_hub_folder(tuned, tmp_path / f"hub-of-{start.name}")
        with pytest.raises(UserError, match="trained on all 1438"):
            held_out_for_hub(again, "digits")


def test_a_model_that_starts_from_one_with_the_same_validation_images_is_calibrated(run, tmp_path):
    settings = {"data": "digits", "size": 8, "epochs": 1, "batch_size": 256, "method": "standard", "track": "none"}
    tuned = train({**settings, "init": str(run.path)}, tmp_path / "tuned", quiet=True)
    assert seen_by_init(tuned) == 0 and load_model(tuned.path).calibrator is not None


@pytest.fixture
def pictures(tmp_path):
    """A function that writes so many digits of each class, from the first or after others, into a folder."""
    from PIL import Image

    data = load("digits", size=8)

    def write(name, count, first=0):
        for label in range(10):
            (tmp_path / name / str(label)).mkdir(parents=True)
            for index in (data.train.labels == label).nonzero().flatten().tolist()[first : first + count]:
                pixels = data.train.images[index].permute(1, 2, 0).numpy()
                Image.fromarray(pixels).save(tmp_path / name / str(label) / f"{index}.png")
        return f"folder:{tmp_path / name}"

    return write


PICTURES = {"size": 8, "epochs": 1, "batch_size": 32, "method": "standard", "track": "none", "preset": "laptop"}


def test_a_run_on_a_folder_is_not_calibrated_on_the_test_images_that_were_cut_from_it(pictures, tmp_path):
    folder = pictures("cut", 20)
    run = train({**PICTURES, "data": folder}, tmp_path / "run", quiet=True)
    held = held_out_for_run(run, folder)
    assert set(digest_images(held.split.images)) == set(digest_images(run.data().validation.images))


def test_a_folder_that_was_moved_is_still_cut_as_it_was(pictures, tmp_path):
    run = train({**PICTURES, "data": pictures("before", 20)}, tmp_path / "run", quiet=True)
    own = run.data()
    (tmp_path / "before").rename(tmp_path / "after")
    held = held_out_for_run(run, f"folder:{tmp_path / 'after'}")
    assert set(digest_images(held.split.images)) == set(digest_images(own.validation.images))


def test_a_model_is_not_measured_on_images_that_it_was_calibrated_on(pictures, tmp_path):
    run = train({**PICTURES, "data": pictures("own", 20)}, tmp_path / "run", quiet=True)
    more = pictures("more", 8, first=20)
    assert calibrate_model(run.path, more).calibrator.images == 80
    with pytest.raises(UserError):
        evaluate_run(run, Conditions(("fog",), (1,)), data=more)
    beyond = pictures("beyond", 9, first=20)
    assert evaluate_run(run, Conditions(("fog",), (1,)), data=beyond).clean.calibration.compute().count == 10


def test_what_the_model_that_a_run_starts_from_has_seen_is_seen(pictures, tmp_path):
    first = train({**PICTURES, "data": pictures("one", 20)}, tmp_path / "first", quiet=True)
    other = {**PICTURES, "data": pictures("two", 20, first=20), "init": str(first.path)}
    tuned = train(other, tmp_path / "tuned", quiet=True)
    held = held_out_for_run(tuned, f"folder:{tmp_path / 'one'}")
    assert not set(digest_images(held.split.images)) & set(digest_images(first.data().train.images))


def test_images_that_were_trained_on_are_not_validation_images_once_a_folder_has_grown(pictures, tmp_path):
    """With a test folder of its own, the validation images are cut anew from what is in the training folder."""
    pictures("own/train", 20), pictures("own/test", 3, first=20)
    run = train({**PICTURES, "data": f"folder:{tmp_path / 'own'}"}, tmp_path / "run", quiet=True)
    trained = set(digest_images(run.data().train.images))
    pictures("more", 1, first=30)
    for label in map(str, range(10)):
        for picture in (tmp_path / "more" / label).iterdir():
            picture.rename(tmp_path / "own" / "train" / label / f"a{picture.name}")
    assert trained & set(digest_images(run.data().validation.images)), "or nothing is tested here"
    held = held_out_for_run(run)
    assert len(held.split) and not trained & set(digest_images(held.split.images))
    measured = evaluate_run(run, Conditions(("fog",), (1,)), split="validation", device="cpu")
    assert measured.clean.calibration.compute().count == len(held.split)
