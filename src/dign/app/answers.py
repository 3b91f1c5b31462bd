"""What the playground computes: for an image, what each model sees of it and predicts."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from dign.core.errors import UserError
from dign.core.pixels import to_float
from dign.core.seeds import make_generator
from dign.core.text import clean_text
from dign.corruptions import corrupt, profile_for
from dign.corruptions.settings import PROFILE_NAMES
from dign.data.decoding import read_upright_size
from dign.data.framing import MIDDLE, Framing
from dign.metrics import Calibration
from dign.parallel.devices import pick_device
from dign.report.analysis.quantities import corruption_title
from dign.report.analysis.study import METHOD_ORDER
from dign.report.load import Run as Measured
from dign.report.load import load_run as load_measured
from dign.runs.classifier import Classifier
from dign.runs.ensemble import open_classifier, split_members
from dign.runs.folder import load_run
from dign.runs.predict import read_images


@dataclass(frozen=True)
class Player:
    """A model of the playground, on `device`, with what its run measured; where it is None, `missing` says why."""

    name: str
    title: str
    slot: int
    """Its color (dign.report.palette): the one that its method has in reports, unless an earlier model took it."""
    classifier: Classifier
    device: torch.device
    measured: Measured | None
    missing: str


@dataclass(frozen=True)
class View:
    """What a model sees, uint8 (3,H,W), and its classes with their probabilities, the most probable ones first."""

    image: Tensor
    top: list[tuple[str, float]]


@dataclass(frozen=True)
class Examples:
    """Test images, uint8 (N,3,H,W), with the names of their classes; where there are none, `missing` says why."""

    images: Tensor
    labels: list[str]
    missing: str = ""


def open_players(places: Sequence[str | Path], device: str = "auto") -> list[Player]:
    """The models in these finished run folders or hub folders, or ensembles of them (`ensemble:A,B`)."""
    target = pick_device(device)
    classifiers = [open_classifier(place) for place in places]
    slots = _slots([classifier.method.title for classifier in classifiers])
    short = [classifier.name for classifier in classifiers]
    players = []
    for place, classifier, slot in zip(places, classifiers, slots, strict=True):
        classifier.model.to(target)
        name = classifier.name if short.count(classifier.name) == 1 else str(place)
        players.append(Player(clean_text(name), classifier.method.title, slot, classifier, target, *_measured(place)))
    return players


def _slots(titles: Sequence[str]) -> list[int]:
    """Each method's own slot; one that is repeated or unknown gets a slot that no known method has."""
    slots: list[int] = []
    spare = len(METHOD_ORDER)
    for title in titles:
        own = METHOD_ORDER.index(title) if title in METHOD_ORDER else None
        if own is None or own in slots:
            own, spare = spare, spare + 1
        slots.append(own)
    return slots


def _measured(place: str | Path) -> tuple[Measured | None, str]:
    members = split_members(place)
    if members:
        command = clean_text(
            f"dign evaluate {' '.join(members)} --ensemble", longest=4000
        )  # to be typed: not shortened
        return None, f"Calibration is measured run by run, and an ensemble has no run: `{command}` measures it."
    folder = Path(place)
    if not (folder / "config.toml").is_file():
        return None, "This model is not in a run folder, so it has no results to draw calibration from."
    try:
        return load_measured(folder), ""
    except UserError as error:
        return None, str(error)


def open_examples(places: Sequence[str | Path], count: int = 12) -> Examples:
    """`count` test images, spread evenly, of the first run folder among these places."""
    single = [Path(member) for place in places for member in split_members(place) or [place]]
    folders = [place for place in single if (place / "config.toml").is_file()]
    if not folders:
        return _no_examples("None of the models is in a run folder, so their test images are not known.")
    try:
        data = load_run(folders[0]).data()
    except UserError as error:
        return _no_examples(str(error))
    if len(data.test) == 0:
        return _no_examples(f"{data.name} has no test images.")
    chosen = torch.linspace(0, len(data.test) - 1, min(count, len(data.test))).long()
    labels = [clean_text(data.classes[label]) for label in data.test.labels[chosen].tolist()]
    return Examples(data.test.take(chosen), labels)


def _no_examples(why: str) -> Examples:
    return Examples(torch.empty(0, 3, 1, 1, dtype=torch.uint8), [], why)


def true_class(file: Path, examples: Examples) -> str | None:
    """The class of the example that this image file shows, pixel for pixel; None for any other image."""
    if not examples.labels:
        return None
    height, width = examples.images.shape[-2:]
    pixels = read_images([file], (height, width))
    same = (examples.images == pixels).flatten(1).all(1).nonzero().flatten().tolist()
    return examples.labels[same[0]] if same else None


@torch.no_grad()
def look(
    players: Sequence[Player],
    file: Path,
    corruption: str,
    severity: int,
    *,
    profile: str | None = None,
    draw: int = 0,
    top: int = 5,
) -> list[View]:
    """What each model predicts for an image file under a corruption.

    The image is brought to the model's size as its run did it, and then corrupted, as in `dign evaluate`; models of one
    image size and framing see the same pixels. An image of exactly the model's size is left as it is.

    Args:
        players: The models.
        file: An image file.
        corruption: The name of a corruption.
        severity: 1 to 5, or 0 for the clean image.
        profile: The severity table; None for the one that fits the image size.
        draw: Seed of the corruption's randomness.
        top: How many classes to return, the most probable ones first.

    Returns:
        A view for each model, in the order of `players`.

    Raises:
        UserError: If the file cannot be read as an image.
    """
    seen: dict[tuple[tuple[int, int], Framing], Tensor] = {}
    views = []
    for player in players:
        size = player.classifier.image_size, _choose_framing(player, file)
        if size not in seen:
            clean = read_images([file], *size)
            seen[size] = corrupt(clean, corruption, severity, profile=profile, seed=draw)
        images = to_float(seen[size].to(player.device))
        generator = make_generator(draw, "play", 0, player.device)
        probabilities = player.classifier.predict(images, generator)[0].cpu()
        values, order = probabilities.topk(min(top, len(probabilities)))
        names = [clean_text(player.classifier.classes[index]) for index in order.tolist()]
        views.append(View(seen[size][0], list(zip(names, values.tolist(), strict=True))))
    return views


def _choose_framing(player: Player, file: Path) -> Framing:
    """The model's own, except for an image that was framed already, as the examples are."""
    with suppress(UserError):  # what is wrong with the file is said when it is read
        if read_upright_size(file) == player.classifier.image_size:
            return MIDDLE
    return player.classifier.framing


def common_profile(players: Sequence[Player]) -> str | None:
    """The severity table that all the models were evaluated with; None where there is not one for all."""
    found = {_profile_measured(player) for player in players if player.measured}
    return found.pop() if len(found) == 1 else None


def _profile_measured(player: Player) -> str | None:
    """The profile in the results file; a benchmark from elsewhere may not name one."""
    named = player.measured.results.evaluation.profile if player.measured else None
    return named if named in PROFILE_NAMES else None


def calibration_under(
    player: Player, corruption: str, severity: int, profile: str | None = None
) -> tuple[str, Calibration | None]:
    """The condition's name and what the run measured under it, or a sentence that says how to measure it and None."""
    if player.measured is None:
        return player.missing, None
    if severity == 0:
        return "clean images", player.measured.results.clean.calibration
    title = f"{corruption_title(corruption)}, severity {severity}"
    shown, used = profile or profile_for(*player.classifier.image_size), _profile_measured(player)
    if used not in (None, shown):
        return f"Not measured with the severities of {shown}: `dign play --profile {used}` shows those it was.", None
    measured = player.measured.results.corruptions.get(corruption)
    if measured is None or severity not in measured.severities:
        return f"Not measured under {title}: `dign evaluate {clean_text(player.measured.folder)}` does.", None
    return title, measured.severities[severity].calibration
