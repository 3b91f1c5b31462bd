"""Trackers: one interface, offline by default, and what was logged can be read back."""

import json
import sys
import types

import pytest

from dign.core.errors import UserError
from dign.runs.config import RunConfig
from dign.training.logger import flatten_record
from dign.training.trackers import TRACKERS, get_or_create_id, make_tracker
from dign.training.train import train


def config(**changes):
    values = {"data": "digits", "size": 8, "epochs": 1, "batch_size": 256, "method": "dign", "validate_every": 1}
    return RunConfig.from_mapping({**values, **changes})


def recorded(folder):
    """What metrics.jsonl says: (step, name) to number."""
    records = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    return {(record["step"], name): value for record in records for name, value in flatten_record(record).items()}


def test_a_tracker_that_cannot_begin_is_one_sentence(tmp_path, monkeypatch):
    class Down:
        def __init__(self, folder, first, settings):
            raise ConnectionError("No server at localhost.\nAsk somebody.")

    monkeypatch.setitem(TRACKERS, "mlflow", (Down, "json"))
    with pytest.raises(UserError, match=r"could not start \(No server at localhost\): fix that and resume the run"):
        make_tracker("mlflow", tmp_path, 0, {})


def test_a_tracker_that_is_not_installed_is_named_before_anything_is_written(tmp_path, monkeypatch):
    for name, module in (("mlflow", "mlflow"), ("wandb", "wandb"), ("tensorboard", "torch.utils.tensorboard")):
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(UserError, match=rf"pip install 'dign\[{name}\]'"):
            train(config(track=name), tmp_path / "run", quiet=True)
        assert not (tmp_path / "run").exists()
    assert make_tracker("auto", tmp_path, 0, {}) is None, "TensorBoard is a convenience, not a need"
    assert make_tracker("none", tmp_path, 0, {}) is None


@pytest.mark.slow
def test_a_tracker_gets_every_number_of_the_record_and_is_closed(tmp_path, monkeypatch):
    seen, closed = {}, []

    class Recorder:
        def __init__(self, folder, first, settings):
            assert first == 0 and settings["dign.samples"] == 3 and settings["epochs"] == 1

        def log(self, values, step):
            seen.update({(step, name): value for name, value in values.items()})

        def close(self):
            closed.append(True)

    monkeypatch.setitem(TRACKERS, "mlflow", (Recorder, "json"))
    run = train(config(track="mlflow"), tmp_path / "run", quiet=True)
    assert seen == recorded(run.path) and closed == [True]
    assert {"consistency", "validation/accuracy"} <= {name for _, name in seen}


def test_weights_and_biases_is_offline_unless_told_otherwise(tmp_path, monkeypatch):
    asked = []

    class Run:
        def log(self, values, step): ...

        def finish(self): ...

    def init(**options):
        asked.append(options)
        return Run()

    fake = types.SimpleNamespace(init=init, Settings=lambda **options: options)
    monkeypatch.setitem(sys.modules, "wandb", fake)
    monkeypatch.delenv("WANDB_MODE", raising=False)
    make_tracker("wandb", tmp_path, 0, {}).close()
    monkeypatch.setenv("WANDB_MODE", "online")
    make_tracker("wandb", tmp_path, 5, {}).close()
    assert [options["mode"] for options in asked] == ["offline", "online"]
    assert asked[0]["id"] == asked[1]["id"], "a resumed run is the same run"


def test_an_identity_is_made_once(tmp_path):
    assert get_or_create_id(tmp_path, "a", lambda: "first") == "first"
    assert get_or_create_id(tmp_path, "b", lambda: "other") == "other"
    assert get_or_create_id(tmp_path, "a", lambda: "second") == "first"
    (tmp_path / "tracking.json").write_text("[broken")
    assert get_or_create_id(tmp_path, "a", lambda: "third") == "third"


def test_mlflow_in_earnest(tmp_path, monkeypatch):
    pytest.importorskip("mlflow", reason="needs the extra dign[mlflow]")
    from mlflow.tracking import MlflowClient

    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    run = train(config(track="mlflow"), tmp_path / "run", quiet=True)
    client = MlflowClient(tracking_uri=(run.path / "mlruns").as_uri())
    known = client.get_run(json.loads((run.path / "tracking.json").read_text())["mlflow"])
    assert known.data.params["dign.samples"] == "3" and known.info.status == "FINISHED"
    for (step, name), value in recorded(run.path).items():
        assert value in [m.value for m in client.get_metric_history(known.info.run_id, name) if m.step == step]


def test_weights_and_biases_in_earnest(tmp_path, monkeypatch):
    pytest.importorskip("wandb", reason="needs the extra dign[wandb]")
    monkeypatch.delenv("WANDB_MODE", raising=False)
    run = train(config(track="wandb"), tmp_path / "run", quiet=True)
    (offline,) = (run.path / "wandb").glob("offline-run-*")
    assert list(offline.glob("*.wandb"))


def test_tensorboard_in_earnest(tmp_path):
    pytest.importorskip("tensorboard", reason="needs the extra dign[tensorboard]")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run = train(config(), tmp_path / "run", quiet=True)
    events = EventAccumulator(str(run.path / "tensorboard"))
    events.Reload()
    for (step, name), value in recorded(run.path).items():
        assert value in [pytest.approx(event.value) for event in events.Scalars(name) if event.step == step]
