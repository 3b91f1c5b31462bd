"""One color and one marker per method, the same in every figure; told apart by color-blind readers too."""

from __future__ import annotations

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
         ("#5b3fa8", "#b49af5"), ("#30343b", "#e3e5ea"))  # fmt: skip
ColorS = (*(_KNOWN[title] for title in METHOD_ORDER), *_MORE)
DASHES = ("", "6 3", "2 3", "8 3 2 3")
MARKERS = ("circle", "square", "triangle", "diamond", "cross", "down")


def color_of(slot: int, dark: bool = False) -> str:
    return ColorS[slot % len(ColorS)][int(dark)]


def dash_of(group: Group) -> str:
    """Standard is dashed, as the thing to compare with; a color used for the second time is dashed too."""
    if group.label == "Standard":
        return "5 4"
    return DASHES[min(group.slot // len(ColorS), len(DASHES) - 1)]


def marker_of(slot: int) -> str:
    return MARKERS[slot % len(MARKERS)]


def palette_css(slots: set[int]) -> str:
    """Custom properties for the slots in use: `.s3 { --c: ... }`, for light and for dark."""
    light = "".join(f".s{slot}{{--c:{color_of(slot)}}}" for slot in sorted(slots))
    dark = "".join(f".s{slot}{{--c:{color_of(slot, dark=True)}}}" for slot in sorted(slots))
    hide = "".join(f".hide-{slot} .s{slot}:not(.chip, .chip *){{display:none}}" for slot in sorted(slots))
    forced = "".join(f":root[data-theme=dark] .s{s}{{--c:{color_of(s, dark=True)}}}" for s in sorted(slots))
    return (
        f"{light}@media screen and (prefers-color-scheme:dark){{{_unless_light(dark)}}}@media screen{{{forced}}}{hide}"
    )


def _unless_light(css: str) -> str:
    return css.replace(".s", ":root:not([data-theme=light]) .s")


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
