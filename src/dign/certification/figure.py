"""The figure of certificates: certified accuracy against the radius, with the published curves beside ours."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import resources
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dign.core.text import escape_mathtext

COLORS = ("#00539c", "#c2410c", "#00805a", "#7a1f4b", "#b97b00", "#007f8f", "#5b3fa8", "#6b6f76")


def read_published() -> dict[str, Any]:
    """The published curves on CIFAR-10 (certification/published.json)."""
    text = resources.files("dign.certification").joinpath("published.json").read_text(encoding="utf-8")
    curves: dict[str, Any] = json.loads(text)
    return curves


def _draw_attack(axes: Axes, result: dict[str, Any], label: str, color: str) -> None:
    """The percent of images for which the attack found no smaller change: the truth lies between it and the proof."""
    norms = sorted(row["attack"] for row in result["rows"] if row["correct"] and row["attack"] is not None)
    right = sum(row["correct"] for row in result["rows"])
    heights = [100 * (right - number) / result["images"] for number in range(len(norms) + 1)]
    axes.step([0, *norms], heights, where="post", linestyle=(0, (4, 2)), linewidth=1.2, label=label, color=color)


def draw_certificates(results: Sequence[dict[str, Any]], *, published: bool = True) -> Figure:
    """Certified accuracy against the radius, one line for each file that `dign certify` wrote.

    Args:
        results: Contents of certificates-SIGMA.json files.
        published: Draw the published curves for the same sigma too, where the data is CIFAR-10.
    """
    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    axes = figure.subplots()
    for number, result in enumerate(results):
        right = sorted((row["radius"] for row in result["rows"] if row["correct"]), reverse=True)
        heights = [100 * count / result["images"] for count in range(1, len(right) + 1)]
        sigma = result["plan"]["sigma"]
        label = escape_mathtext(f"{result['run']['name']}, sigma {sigma:g}")
        x, y = [*right[:1], *right, 0], [0, *heights, *heights[-1:]] if heights else [0]
        color = COLORS[number % len(COLORS)]
        axes.step(x, y, where="pre", label=label, color=color)
        if any(row.get("attack") is not None for row in result["rows"]):
            _draw_attack(axes, result, f"{label}: under attack", color)
    sigmas = {result["plan"]["sigma"] for result in results}
    if published and all(result["run"]["data"] == "cifar10" for result in results):
        curves = read_published()
        for number, curve in enumerate(curve for curve in curves["curves"] if curve["sigma"] in sigmas):
            radii = curves["radii"][: len(curve["accuracy"])]
            label, style = f"{curve['title']}, sigma {curve['sigma']:g}", "o--" if number % 2 else "s:"
            color = COLORS[(number + 3) % len(COLORS)]
            axes.plot(radii, curve["accuracy"], style, markersize=4, linewidth=1, alpha=0.7, color=color, label=label)
    axes.set(xlabel="l2 radius (pixels in [0,1])", ylabel="certified accuracy (%)", xlim=(0, None), ylim=(0, 100))
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7, frameon=False)
    return figure
