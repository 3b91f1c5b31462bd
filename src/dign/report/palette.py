"""One color and one marker per method, the same in every figure; told apart by color-blind readers too."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from dign.report.analysis.study import METHOD_ORDER, Group

# Found by a search that spread the colors apart for four kinds of color vision (tests/report/html/test_page.py).
_KNOWN: dict[str, tuple[str, str]] = {  # on a light ground, on a dark ground
    "Standard": ("#6b6f76", "#a9adb5"),
    "AT": ("#8a412e", "#d5575b"),
    "TRADES": ("#900042", "#b860b2"),
    "RSE": ("#d97704", "#ffaa00"),
    "DeepAugment": ("#765e00", "#8e8200"),
    "AugMix": ("#0f925e", "#51f07c"),
    "AugMax": ("#ff3faf", "#ffccb2"),
    "DiGN w/o CR": ("#0994f7", "#08bbfc"),
    "DiGN": ("#0042a8", "#2b7fee"),
    "DiGN+AugMix": ("#5c0660", "#e5cbff"),
}
_MORE = (("#8a5a2b", "#d9a878"), ("#007f8f", "#46c6d6"), ("#a00020", "#ff7d8c"), ("#4d7c0f", "#a6d84f"),
         ("#5b3fa8", "#b49af5"), ("#30343b", "#e3e5ea"), ("#b0306a", "#f48fb1"), ("#00695c", "#80cbc4"),
         ("#ad4e00", "#ffb380"), ("#283593", "#9fa8da"), ("#827717", "#dce775"), ("#6d4c41", "#bcaaa4"))  # fmt: skip
COLORS = (*(_KNOWN[title] for title in METHOD_ORDER), *_MORE)
THEME = {  # on a light ground, on a dark ground
    "ground": ("#fbfaf7", "#14161a"),
    "paper": ("#ffffff", "#1c1f25"),
    "ink": ("#1b1d21", "#e9e7e2"),
    "soft": ("#5b606a", "#a3a8b2"),
    "rule": ("#dfdcd4", "#343943"),
    "hover": ("#00000010", "#ffffff16"),
    "shade": ("#0000001f", "#ffffff2b"),
    "accent": ("#00539c", "#7db8f5"),
    "warn-ground": ("#fff4d6", "#3a2f10"),
    "warn-ink": ("#5c4300", "#f5dc98"),
    "good": ("#00693f", "#5fd3a0"),
    "bad": ("#a3200d", "#ff9c8a"),
}
"""What is not a method's: the colors of the page, of its text and of its rules."""
DASHES = ("", "6 3", "2 3", "8 3 2 3")
MARKERS = ("circle", "square", "triangle", "diamond", "cross", "down")


def color_of(slot: int, dark: bool = False) -> str:
    return COLORS[slot % len(COLORS)][int(dark)]


def dash_of(group: Group) -> str:
    """Standard is dashed, as the thing to compare with; a color used for the second time is dashed too."""
    if group.label == "Standard":
        return "5 4"
    return DASHES[min(group.slot // len(COLORS), len(DASHES) - 1)]


def marker_of(slot: int) -> str:
    return MARKERS[slot % len(MARKERS)]


def color_rules(slots: Iterable[int], dark: bool = False, within: str = ":root") -> str:
    """Custom properties: those of the theme in `within`, and `--c`, a method's color, for each slot inside it."""
    theme = "".join(f"--{name}:{colors[int(dark)]};" for name, colors in THEME.items())
    scheme = f"color-scheme:{'dark' if dark else 'light'}"
    methods = "".join(f"{within} .s{slot}{{--c:{color_of(slot, dark)}}}" for slot in sorted(set(slots)))
    return f"{within}{{{theme}{scheme}}}{methods}"


def palette_css(slots: Iterable[int]) -> str:
    """Colors for the slots in use: as the system wants, light or dark, or as `data-theme` says; on paper light."""
    slots = sorted(set(slots))
    by_system = color_rules(slots, dark=True, within=":root:not([data-theme=light])")
    by_hand = color_rules(slots, dark=True, within=":root[data-theme=dark]")
    hide = "".join(f".hide-{slot} .s{slot}:not(.chip, .chip *){{display:none}}" for slot in slots)
    return (
        f"{color_rules(slots)}@media screen and (prefers-color-scheme:dark){{{by_system}}}"
        f"@media screen{{{by_hand}}}{hide}"
    )


_HEAT = (
    (0.0, (59, 15, 84)),
    (0.25, (62, 73, 137)),
    (0.5, (38, 130, 142)),
    (0.75, (92, 184, 120)),
    (1.0, (246, 232, 120)),
)
"""From dark violet to pale yellow, ever lighter: the order survives gray print and any color vision."""


def heat_color(fraction: float) -> tuple[str, str]:
    """Background and readable text color for a fraction in [0,1]."""
    fraction = min(max(fraction, 0.0), 1.0)
    for (low, first), (high, second) in pairwise(_HEAT):
        if fraction <= high:
            share = (fraction - low) / (high - low)
            red, green, blue = (round(a + share * (b - a)) for a, b in zip(first, second, strict=True))
            break
    return f"#{red:02x}{green:02x}{blue:02x}", "#ffffff" if relative_luminance(red, green, blue) < 0.179 else "#000000"


def relative_luminance(red: int, green: int, blue: int) -> float:
    """As WCAG defines it: 0 for black, 1 for white."""

    def linear(value: int) -> float:
        share = value / 255
        return share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4

    return 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue)
