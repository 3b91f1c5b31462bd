"""Accuracy under attack: how many images stay right when they are changed on purpose, within a ball."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from dign.core.checks import check_integer
from dign.core.errors import UserError, unknown_name
from dign.core.files import read_json, write_json
from dign.core.freezing import freeze_temporarily
from dign.core.image_rng import image_noise, make_placed_generator
from dign.core.outputs import logits_of
from dign.core.pixels import to_float
from dign.core.provenance import git_commit, now, versions
from dign.core.sampling import spread_indices
from dign.data.dataset import DataSet, Split
from dign.evaluation.inputs import Data, open_images
from dign.evaluation.measure import Batches, Predictor
from dign.evaluation.predictors import device_of, predict_by_logits
from dign.evaluation.subjects import Subject
from dign.methods.apgd import apgd, targeted_dlr
from dign.methods.attacks import NORMS, cross_entropy_of, pgd
from dign.methods.base import Method
from dign.parallel.devices import device_name, find_device, pick_device
from dign.parallel.team import SINGLE_PROCESS, Team
from dign.runs.classifier import Classifier

ATTACKS = ("pgd", "apgd")
ATTACKS_FILE = "attacks.json"
TARGETS = 9
"""The most classes that a targeted attack tries: the likeliest wrong ones."""


@dataclass(frozen=True, kw_only=True)
class Attack:
    """An attack: how images are changed so that the answer becomes wrong.

    "pgd" takes steps of fixed length up the cross-entropy. "apgd" chooses its own step length; it attacks by the
    cross-entropy, and images that withstand are attacked once more for each of the likeliest wrong classes (at most
    nine), by the targeted difference of logits ratio. It is the stronger of the two, and costs more passes.

    Args:
        kind: "pgd" or "apgd".
        norm: "linf" or "l2".
        eps: Radius of the ball, in [0,1] pixel units.
        steps: Steps of each attempt.
        restarts: Attempts from random starts.
        seed: Seed of the starts; an image's start does not depend on the batch that it is in.

    Raises:
        UserError: A setting makes no sense.

    >>> Attack(kind="apgd", eps=8 / 255).title
    'APGD linf 8/255'
    """

    kind: str = "apgd"
    norm: str = "linf"
    eps: float = 8 / 255
    steps: int = 20
    restarts: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        for what, name, known in (("attack", self.kind, ATTACKS), ("norm", self.norm, NORMS)):
            if name not in known:
                raise unknown_name(what, name, known)
        check_integer(1, steps=self.steps, restarts=self.restarts)
        if not 0 < self.eps < math.inf:
            raise UserError(f"`eps` must be above 0, in [0,1] pixel units, not {self.eps:g}.")
        if self.norm == "linf" and self.eps > 1:
            raise UserError(f"`eps` is in [0,1] pixel units: {self.eps:g} is beyond it; 8/255 is usual for linf.")

    @property
    def title(self) -> str:
        """What tables call it."""
        return f"{self.kind.upper()} {self.norm} {write_eps(self.eps)}"

    def perturb(self, model: nn.Module, images: Tensor, labels: Tensor, *, first: int = 0) -> Tensor:
        """Images within the ball that the model gets wrong, where the attack finds them.

        Args:
            model: From images in [0,1] to logits; it is left as it was found.
            images: Float images (N,3,H,W) in [0,1], on the model's device.
            labels: Their classes (N,).
            first: The number of the first image in a larger set of which these are a part.

        Returns:
            As many images: attacked successfully; unchanged where the answer was wrong before; or the last attempt.

        >>> model = nn.Sequential(nn.Flatten(), nn.Linear(192, 10))
        >>> images = torch.rand(4, 3, 8, 8)
        >>> attacked = Attack(kind="pgd", eps=0.1).perturb(model, images, model(images).argmax(1))
        >>> bool((attacked - images).abs().max() <= 0.1 + 1e-6)
        True
        """
        run = partial(pgd if self.kind == "pgd" else apgd, norm=self.norm, radius=self.eps, steps=self.steps)
        attacked = images.clone()
        with freeze_temporarily(model):
            logits = _logits(model, images)
            standing = (logits.argmax(1) == labels).nonzero().flatten()
            for attempt, wrong in enumerate(self._attempts(logits, labels)):
                if len(standing) == 0:
                    break
                start = self._starts(images, first, attempt)[standing]
                y = labels[standing]
                objective = cross_entropy_of(y) if wrong is None else targeted_dlr(y, wrong[standing])
                attacked[standing] = run(model, images[standing], objective, start=start)
                standing = standing[_logits(model, attacked[standing]).argmax(1) == y]
        return attacked

    def _attempts(self, logits: Tensor, labels: Tensor) -> list[Tensor | None]:
        """The class that each attempt wants for each image; None: any but the true one."""
        attempts: list[Tensor | None] = [None] * self.restarts
        if self.kind == "apgd":
            others = logits.scatter(1, labels[:, None], -math.inf)
            attempts += list(others.topk(min(TARGETS, logits.shape[1] - 1), dim=1).indices.unbind(1))
        return attempts

    def _starts(self, images: Tensor, first: int, attempt: int) -> Tensor:
        """Uniform in the cube, or on the sphere."""
        noise = image_noise(images, first=first, seed=self.seed, purpose="attack", draw=attempt)
        if self.norm == "linf":
            return self.eps * torch.erf(noise / math.sqrt(2))
        length: Tensor = torch.linalg.vector_norm(noise.flatten(1), dim=1).view(-1, 1, 1, 1)
        return self.eps * noise / length


def _logits(model: nn.Module, images: Tensor) -> Tensor:
    with torch.no_grad():
        logits: Tensor = logits_of(model(images))
    return logits


def write_eps(eps: float) -> str:
    """A radius as people write it: 8/255 rather than 0.0313725.

    >>> write_eps(8 / 255), write_eps(0.5)
    ('8/255', '0.5')
    """
    levels = eps * 255
    return f"{round(levels)}/255" if abs(levels - round(levels)) < 1e-6 and round(levels) < 128 else f"{eps:g}"


@dataclass(frozen=True)
class AttackResult:
    """What an attack left of a model's accuracy.

    Attributes:
        attack: The attack.
        images: How many images were attacked.
        accuracy: Accuracy on them as they are, in percent.
        robust_accuracy: Percent of them that stay right under the attack.
        split: The split that they are from.
        seconds: How long it took.
        about: Commit, time, versions and device.

    >>> AttackResult(Attack(), images=100, accuracy=90.0, robust_accuracy=40.0).attack.title
    'APGD linf 8/255'
    """

    attack: Attack
    images: int
    accuracy: float
    robust_accuracy: float
    split: str | None = None
    seconds: float = 0.0
    about: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The entry in attacks.json."""
        return asdict(self)


class _LogOfPredictions(nn.Module):
    """A method that predicts in a way of its own (RSE's average over noise) as a module whose gradient can be had."""

    def __init__(self, model: nn.Module, predict: Callable[..., Tensor], generator: torch.Generator) -> None:
        super().__init__()
        self.model, self.predict, self.generator = model, predict, generator

    def forward(self, images: Tensor) -> Tensor:
        """Logarithms of the probabilities, whose softmax they are."""
        return self.predict(self.model, images, self.generator).clamp(min=1e-12).log()


def attack_subject(
    subject: Subject,
    data: DataSet,
    attack: Attack,
    *,
    images: int = 1000,
    split: str = "test",
    device: str = "auto",
    batch_size: int = 250,
    team: Team = SINGLE_PROCESS,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> AttackResult:
    """The accuracy under attack on images of a split, spread evenly over it.

    Args:
        subject: What is attacked, as it predicts: a run (`open_run`), or any model.
        data: Its images.
        attack: The attack.
        images: How many images of the split.
        split: "test", "validation" or "train".
        device: "auto", "cpu", "cuda", ...
        batch_size: Images attacked at once.
        team: Processes that share the work.
        progress: Called with the number of images done and of all.

    Raises:
        UserError: The split has no images, or the model has no gradient.
    """
    chosen: Split = getattr(data, split)
    if len(chosen) == 0:
        raise UserError(f"The {split} split of {data.name} has no images to attack: choose another split.")
    target = team.device or pick_device(device)
    indices = torch.tensor(spread_indices(len(chosen), images))
    batches = ((chosen.take(part), chosen.labels[part]) for part in indices.split(batch_size))
    follow = lambda done: progress(min(done, len(indices)), len(indices))  # noqa: E731
    result = _attack_batches(subject.model.to(target), subject.predict, batches, attack, target, team, follow)
    return replace(result, split=split)


def robust_accuracy(
    model: nn.Module,
    data: Data,
    attack: Attack | None = None,
    *,
    batch_size: int = 250,
    device: torch.device | str | None = None,
) -> AttackResult:
    """Accuracy of any model under attack.

    Args:
        model: A module from images in [0,1] to logits, or the classifier of `dign.load_model`. It is left as it was.
        data: What `dign.evaluate` takes; all of its images are attacked.
        attack: By default APGD in linf, with radius 8/255.
        batch_size: Images attacked at once; a DataLoader keeps its own.
        device: Where the images are sent; by default where the model is.

    Returns:
        The accuracy before and under the attack.

    Raises:
        UserError: Model, images or labels are not what is described here.

    >>> model = nn.Sequential(nn.Flatten(), nn.Linear(192, 10))
    >>> result = robust_accuracy(model, (torch.rand(8, 3, 8, 8), torch.arange(8)), Attack(kind="pgd"))
    >>> result.robust_accuracy <= result.accuracy
    True
    """
    if not isinstance(model, nn.Module):
        raise UserError(f"an attack needs gradients: `model` must be an nn.Module, not a {type(model).__name__}.")
    network: nn.Module = model
    predict: Callable[..., Tensor] = predict_by_logits
    if isinstance(model, Classifier):
        network, predict = model.model, model.method.predict
    target = device_of(network) if device is None else find_device(str(device))
    return _attack_batches(network, predict, open_images(data, batch_size).batches, attack or Attack(), target)


def _attack_batches(
    model: nn.Module,
    predict: Callable[..., Tensor],
    batches: Batches,
    attack: Attack,
    device: torch.device,
    team: Team = SINGLE_PROCESS,
    progress: Callable[[int], None] = lambda done: None,
) -> AttackResult:
    """Where `predict` is more than the softmax of the logits, the attack follows its gradient."""
    started = time.monotonic()
    plain = predict is predict_by_logits or getattr(predict, "__func__", None) is Method.predict
    check: Predictor = partial(predict, model)
    right: list[tuple[int, int]] = []
    first = 0
    with team.all_or_none(), freeze_temporarily(model):
        for number, (images, labels) in enumerate(batches):
            if number % team.world_size == team.rank:
                x, y = to_float(images.to(device)), labels.to(device)
                draw = partial(make_placed_generator, attack.seed, first=first, device=device)
                target = model if plain else _LogOfPredictions(model, predict, draw(purpose="attack/gradient"))
                if number < team.world_size:
                    _check_gradient(target, x[:1])
                attacked = attack.perturb(target, x, y, first=first)
                before = _right(check, x, y, draw(purpose="attack/clean"))
                after = _right(check, attacked, y, draw(purpose="attack/attacked"))
                right.append((int(before.sum()), int((before & after).sum())))
            first += len(labels)
            progress(first)
    counts = [pair for found in team.gather(right) for pair in found]
    if first == 0:
        raise UserError("there are no images to attack.")
    accuracy, robust = (100 * sum(column) / first for column in zip(*counts, strict=True))
    about = {"commit": git_commit(), "time": now(), "versions": versions(), "device": device_name(device)}
    seconds = round(time.monotonic() - started, 2)
    return AttackResult(attack, first, accuracy, robust, None, seconds, about)


def _check_gradient(model: nn.Module, image: Tensor) -> None:
    with torch.enable_grad():
        if not logits_of(model(image.clone().requires_grad_())).requires_grad:
            raise UserError("an attack needs gradients, and this model gives none: an ONNX file cannot be attacked.")


@torch.no_grad()
def _right(predict: Predictor, images: Tensor, labels: Tensor, generator: torch.Generator) -> Tensor:
    return predict(images, generator).argmax(1) == labels


def save_attack(folder: Path, result: AttackResult) -> Path:
    """Add a result to attacks.json; one of the same attack on as many images of the same split is replaced."""
    file = folder / ATTACKS_FILE
    entry = result.to_json()
    same = ("attack", "images", "split")
    kept = [each for each in read_attacks(folder) if any(each.get(key) != entry[key] for key in same)]
    write_json(file, {"schema": 1, "attacks": [*kept, entry]})
    return file


def read_attacks(folder: Path) -> list[dict[str, Any]]:
    """The entries of attacks.json that can be read; the file may be untrusted."""
    try:
        entries = read_json(folder / ATTACKS_FILE)["attacks"]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
