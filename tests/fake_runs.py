"""Run folders as `dign train` and `dign evaluate` would leave them, with made-up but consistent numbers."""

from __future__ import annotations

import json
import zlib
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from dign.evaluation.result_parts import ConditionResult
from dign.metrics import Calibration

NOISE = ("gaussian_noise", "shot_noise", "impulse_noise", "speckle_noise")
ALL = {
    "noise": NOISE,
    "blur": ("defocus_blur", "glass_blur", "motion_blur", "zoom_blur", "gaussian_blur"),
    "weather": ("snow", "frost", "fog", "brightness", "spatter"),
    "digital": ("contrast", "elastic_transform", "pixelate", "jpeg_compression", "saturate"),
}
# title: (registry key, clean accuracy, loss of accuracy per severity, overconfidence)
METHODS = {
    "Standard": ("standard", 0.95, 0.130, 0.80),
    "AT": ("at", 0.86, 0.020, 0.15),
    "TRADES": ("trades", 0.84, 0.020, 0.10),
    "RSE": ("rse", 0.90, 0.030, 0.40),
    "DeepAugment": ("deepaugment", 0.93, 0.030, 0.30),
    "AugMix": ("augmix", 0.95, 0.050, 0.25),
    "AugMax": ("augmax", 0.94, 0.060, 0.20),
    "DiGN w/o CR": ("dign-without-cr", 0.92, 0.018, 0.35),
    "DiGN": ("dign", 0.94, 0.014, 0.22),
    "DiGN+AugMix": ("dign+augmix", 0.95, 0.012, 0.15),
}


def fake_conditions(wanted: list[tuple[float, float]], images: int, seed: int) -> list[Calibration]:
    """Predictions per (accuracy, overconfidence): about so accurate, and so much more confident than right.

    All conditions are drawn and binned at once with numpy, for a grid has thousands of them.
    """
    accuracy, overconfidence = np.array(wanted).T[:, :, None]
    random = np.random.default_rng(seed)
    chance = random.random((len(wanted), images)) ** (1 / accuracy - 1)  # its mean is `accuracy`
    correct = random.random(chance.shape) < chance
    confidence = (1 - (1 - chance) ** (1 + 3 * overconfidence)).clip(0.11, 1.0)
    index = np.ceil(confidence * 16).astype(int) - 1
    deviation = confidence - (index + 0.5) / 16
    place = index + 16 * np.arange(len(wanted))[:, None]

    def sums(values: np.ndarray) -> np.ndarray:
        return np.bincount(place.ravel(), values.ravel(), minlength=16 * len(wanted)).reshape(-1, 16)

    columns = {"counts": np.ones_like(chance), "correct": correct, "deviation": deviation, "square": deviation**2}
    totals = {key: sums(values) for key, values in columns.items()}
    for key in ("counts", "correct"):
        totals[key] = totals[key].astype(int)
    return [Calibration.from_state({key: rows[i].tolist() for key, rows in totals.items()}) for i in range(len(wanted))]


def as_condition(calibration: Calibration) -> dict:
    return ConditionResult.of(calibration).to_json()


def pooled(parts: list[Calibration]) -> dict | None:
    if not parts:
        return None
    total = Calibration()
    for part in parts:
        total.merge(part)
    return asdict(total.compute())


def fake_results(title: str, seed: int, *, model: str, data: str, families: tuple[str, ...], images: int) -> dict:
    key, clean_accuracy, slope, overconfidence = METHODS.get(title, ("other", 0.9, 0.08, 0.5))
    names = [name for family in families for name in ALL[family]]
    wanted = [(clean_accuracy, 0.3 * overconfidence)]
    for name in names:
        harder = 0.6 + zlib.crc32(name.encode()) % 100 / 100
        drops = [slope * harder * severity for severity in range(1, 6)]
        wanted += [(max(clean_accuracy - drop, 0.1), overconfidence) for drop in drops]
    clean, *rest = fake_conditions(wanted, images, zlib.crc32(f"{title}{seed}{model}".encode()))
    conditions = {name: dict(enumerate(rest[5 * i : 5 * i + 5], start=1)) for i, name in enumerate(names)}
    family_of = {name: family for family in families for name in ALL[family]}
    means = {name: sum(c.compute().accuracy for c in parts.values()) / 5 for name, parts in conditions.items()}
    counted = [name for name in conditions if name != "gaussian_noise"]
    noises = [name for name in counted if name in NOISE]

    def mean(names: list[str]) -> float | None:
        return sum(means[name] for name in names) / len(names) if names else None

    return {
        "schema": 1,
        "run": {
            "name": f"{key}-{seed}", "method": key, "title": title, "model": model, "data": data, "seed": seed,
            "parameters": 123456,
        },
        "evaluation": {
            "split": "test", "images": images, "image_size": [16, 16], "profile": "imagenet", "seed": 0,
            "benchmark": None, "frost": None, "bins": 16, "commit": "abc1234", "time": "2026-01-31T12:00:00+00:00",
            "seconds": 12.3, "versions": {"dign": "0.1.0", "torch": "2.13.0", "python": "3.11.7"},
        },
        "classes": [str(digit) for digit in range(10)],
        "clean": as_condition(clean),
        "corruptions": {
            name: {"family": family_of[name], "severities": {str(s): as_condition(c) for s, c in parts.items()}}
            for name, parts in conditions.items()
        },
        "summary": {
            "clean_accuracy": clean.compute().accuracy,
            "mca": mean(counted),
            "mca_n": mean(noises),
            "families": {f: mean([n for n in counted if family_of[n] == f]) for f in families},
            "calibration": {
                "clean": asdict(clean.compute()),
                "noise": pooled([c for name in noises for c in conditions[name].values()]),
                "all": pooled([c for name in counted for c in conditions[name].values()]),
            },
        },
    }  # fmt: skip


def fake_metrics(title: str, seed: int, epochs: int = 12, steps: int = 25) -> str:
    random = np.random.default_rng(seed)
    accuracy, weight = METHODS.get(title, ("", 0.9, 0, 0))[1], 0.3 if "DiGN" in title else 0.0
    lines = []
    for step in range(1, epochs * steps + 1):
        progress = step / (epochs * steps)
        cross_entropy = 2.3 * (1 - progress) ** 2 + 0.1 + 0.05 * random.random()
        terms = {"cross_entropy": cross_entropy}
        if weight:
            terms["consistency"] = weight * (1 - 0.5 * progress)
        record = {"step": step, "epoch": step // steps, "loss": sum(terms.values()), "terms": terms}
        lines.append({**record, "lr": 0.1 * (1 - progress), "images_per_second": 4000.0, "seconds": step * 0.02})
        if step % steps == 0:
            reached = accuracy * 100 * (1 - 0.7 * (1 - progress) ** 3)
            validation = {"accuracy": reached, "loss": cross_entropy}
            lines.append({"step": step, "epoch": step // steps, "validation": validation})
    return "".join(json.dumps(line) + "\n" for line in lines)


def write_fake_run(
    folder: Path,
    title: str = "DiGN",
    seed: int = 0,
    *,
    model: str = "fastnet",
    data: str = "digits",
    families: tuple[str, ...] = ("noise",),
    images: int = 360,
    config: dict | None = None,
    run: dict | None = None,
) -> Path:
    """Write a run folder; `run` replaces entries of results['run']."""
    folder.mkdir(parents=True)
    results = fake_results(title, seed, model=model, data=data, families=families, images=images)
    results["run"].update(run or {})
    (folder / "results.json").write_text(json.dumps(results))
    settings = {"data": data, "model": model, "method": results["run"]["method"], "seed": seed, "epochs": 12}
    settings |= {"lr": 0.1, "schedule": "cosine", "out": str(folder), **(config or {})}
    (folder / "config.toml").write_text("".join(f"{key} = {json.dumps(value)}\n" for key, value in settings.items()))
    (folder / "run.json").write_text(json.dumps({"commit": "abc1234", "started": "2026-01-31T11:59:00+00:00"}))
    (folder / "metrics.jsonl").write_text(fake_metrics(title, seed))
    return folder


def add_confusion(folder: Path, classes: list[str], worst: tuple[str, int] | None = None) -> Path:
    """Give a run's results confusion matrices that agree with them: clean, and of the worst condition or of `worst`."""
    file = folder / "results.json"
    results = json.loads(file.read_text())
    results["classes"] = classes
    accuracies = {
        (name, int(severity)): condition["accuracy"]
        for name, corruption in results["corruptions"].items()
        for severity, condition in corruption["severities"].items()
    }
    worst = worst or min(accuracies, key=accuracies.get, default=None)
    results["confusion"] = []
    for name, severity in (("clean", 0), *([worst] if worst else [])):
        found = results["clean"] if name == "clean" else results["corruptions"][name]["severities"][str(severity)]
        right, total = sum(found["bins"]["correct"]), found["count"]
        counts = np.zeros((len(classes), len(classes)), dtype=int)
        for image in range(total):  # every third mistake is for the next class, the others spread
            label = image % len(classes)
            wrong = (label + (1 if image % 3 == 0 else 1 + image % max(len(classes) - 1, 1))) % len(classes)
            counts[label, label if image < right else wrong] += 1
        results["confusion"].append({"corruption": name, "severity": severity, "counts": counts.tolist()})
    file.write_text(json.dumps(results))
    return folder


@pytest.fixture
def fake_run():
    """The function that writes a run folder: fake_run(folder, title, seed, ...)."""
    return write_fake_run


@pytest.fixture(scope="session")
def demo_runs(tmp_path_factory) -> Path:
    """A folder with four methods on one seed, noise only: what `make demo` leaves."""
    root = tmp_path_factory.mktemp("demo")
    for title in ("Standard", "RSE", "DiGN w/o CR", "DiGN"):
        write_fake_run(root / METHODS[title][0], title)
    return root


@pytest.fixture(scope="session")
def grid_runs(tmp_path_factory) -> Path:
    """A folder with all methods on three seeds under all corruptions: what a grid leaves."""
    root = tmp_path_factory.mktemp("grid")
    for title in METHODS:
        for seed in range(3):
            write_fake_run(
                root / f"{METHODS[title][0]}-{seed}", title, seed, model="resnet18", data="cifar10",
                families=tuple(ALL), images=300,
            )  # fmt: skip
    return root
