"""The playground's answer as HTML: what the models see of an image, and a card for each of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from markupsafe import Markup

from dign.app.answers import Examples, Player, View, calibration_under, look, true_class
from dign.core.errors import UserError
from dign.evaluation.examples import png_base64
from dign.metrics import Calibration
from dign.report.analysis.quantities import corruption_title
from dign.report.html.calibration_charts import reliability_diagram
from dign.report.html.render import read_asset, render
from dign.report.palette import color_rules


@dataclass(frozen=True)
class Picture:
    png: str
    about: str


@dataclass(frozen=True)
class Card:
    """A model's most probable classes, and its reliability diagram under this condition (None: not measured)."""

    player: Player
    top: list[tuple[str, float]]
    caption: str
    diagram: Markup | None


def answer(
    players: Sequence[Player],
    examples: Examples,
    file: str | None,
    corruption: str,
    severity: int,
    draw: int,
    profile: str | None = None,
) -> Markup:
    """The right half of the page. An image that cannot be read gives a sentence on the page."""
    if file is None:
        return note("Drop in an image, or pick one of the examples.")
    try:
        views = look(players, Path(file), corruption, severity, profile=profile, draw=draw)
        truth = true_class(Path(file), examples)
    except UserError as error:
        return note(_without_path(str(error), file), alert=True)
    condition = "clean" if severity == 0 else f"{corruption_title(corruption)}, severity {severity}"
    cards = [
        _card(player, view, *calibration_under(player, corruption, severity, profile))
        for player, view in zip(players, views, strict=True)
    ]
    pictures = _pictures(views, condition)
    return render("answer.html", package="dign.app", pictures=pictures, truth=truth, cards=cards)


def note(text: str, alert: bool = False) -> Markup:
    return render("note.html", package="dign.app", text=text, alert=alert)


def _without_path(sentence: str, file: str) -> str:
    """The name that an upload has on disk means nothing to a user."""
    return sentence.replace(f" {file}", "")


def _pictures(views: Sequence[View], condition: str) -> list[Picture]:
    """One picture for each image size among the models."""
    by_size = {tuple(view.image.shape): view.image for view in views}
    return [
        Picture(png_base64(image), f"What the models see: {condition}, {width} × {height} pixels")
        for (_, height, width), image in by_size.items()
    ]


def _card(player: Player, view: View, condition: str, calibration: Calibration | None) -> Card:
    if calibration is None:
        return Card(player, view.top, condition, None)
    scores = calibration.compute()
    about = f"{condition}: accuracy {scores.accuracy:.1f} %, calibration error (ECE) {scores.ece:.1f} %"
    diagram = reliability_diagram(f"Calibration of {player.name}, {about}", calibration, player.slot)
    return Card(player, view.top, f"Calibration on test images, {about}, {scores.count} images", diagram)


def stylesheet(players: Sequence[Player]) -> str:
    """The page's own rules, and the report's: its charts and its colors, on light and on dark."""
    own = resources.files("dign.app").joinpath("page.css").read_text(encoding="utf-8")
    slots = [player.slot for player in players]
    colors = [
        color_rules(slots, within=".gradio-container"),
        color_rules(slots, dark=True, within=".dark .gradio-container"),
    ]
    return "\n".join([own, read_asset("charts.css"), *colors])
