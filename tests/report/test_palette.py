"""Colors that are told apart by everyone, in light and in dark."""

import itertools

import numpy as np
import pytest

from dign.report.analysis.study import METHOD_ORDER
from dign.report.palette import COLORS, THEME, heat_color, palette_css, relative_luminance


def contrast(one: str, other: str) -> float:
    def luminance(color: str) -> float:
        return relative_luminance(*(int(color[i : i + 2], 16) for i in (1, 3, 5)))

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_method_colors_stand_out_from_the_page_in_light_and_dark():
    for light, dark in COLORS:
        assert contrast(light, THEME["ground"][0]) >= 3 and contrast(dark, THEME["ground"][1]) >= 4.5


# Machado, Oliveira and Fernandes 2009, complete color blindness, on linear RGB
VISION = {
    "usual": np.eye(3),
    "protanopia": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "deuteranopia": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "tritanopia": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}


def lab(color: str, vision: str) -> np.ndarray:
    """CIE L*a*b* of a color as it is seen with this vision."""
    share = np.array([int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    seen = np.clip(np.array(VISION[vision]) @ linear, 0, 1)
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    x, y, z = np.cbrt(to_xyz @ seen / [0.9505, 1.0, 1.089])
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize("dark", [0, 1])
def test_the_methods_of_the_paper_are_told_apart_by_every_color_vision(vision, dark):
    seen = [lab(colors[dark], vision) for colors in COLORS[: len(METHOD_ORDER)]]
    distances = [np.linalg.norm(one - other) for one, other in itertools.combinations(seen, 2)]
    assert min(distances) > 15  # 2 is just visible, side by side


def test_heat_map_text_is_readable_at_every_value_and_lighter_is_more():
    colors = [heat_color(value / 100) for value in range(101)]
    assert min(contrast(background, ink) for background, ink in colors) >= 4.5
    lightness = [contrast(background, "#000000") for background, _ in colors]
    assert lightness == sorted(lightness)


def test_text_and_rules_are_readable_on_the_page_and_on_cards():
    for shade, least in (("ink", 7), ("soft", 4.5), ("accent", 4.5), ("good", 4.5), ("bad", 4.5)):
        for dark in (0, 1):
            for ground in ("ground", "paper"):
                assert contrast(THEME[shade][dark], THEME[ground][dark]) >= least


def test_every_slot_in_use_has_its_color_in_light_in_dark_and_by_hand():
    css = palette_css([3, 8, 3])
    assert css.count(".s3{--c:") == css.count(".s8{--c:") == 3 and ".s4{" not in css
