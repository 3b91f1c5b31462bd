"""The parameters of every corruption at every severity, for the three image sizes they were published for."""

import json
import math
from functools import cache
from importlib import resources
from typing import Any

from dign.core.errors import UserError, unknown_name

SEVERITIES = (1, 2, 3, 4, 5)
FROST_SCALE = {"cifar": 0.2, "tiny-imagenet": 0.3, "imagenet": 1.0}  # how much the frost pictures are shrunk
PROFILES: dict[str, int] = {"cifar": 32, "tiny-imagenet": 64, "imagenet": 224}  # name -> side of the images it is for


def profile_for(height: int, width: int) -> str:
    """The profile whose image size is nearest, on a logarithmic scale, to the geometric mean of the two sides."""
    side = math.sqrt(height * width)
    return min(PROFILES, key=lambda name: abs(math.log(PROFILES[name] / side)))


@cache
def _published() -> dict[str, dict[str, list[Any]]]:
    text = resources.files("dign.corruptions").joinpath("severities.json").read_text(encoding="utf-8")
    return {name: values for name, values in json.loads(text).items() if name in PROFILES}


def get_parameters(name: str, severity: int, profile: str) -> Any:
    """What the published generator of this profile uses at this severity: a number, a list or a dictionary."""
    if profile not in PROFILES:
        raise unknown_name("corruption profile", profile, PROFILES)
    table = _published()[profile]
    if name not in table:
        raise unknown_name("corruption", name, table)
    if isinstance(severity, bool | float) or severity not in SEVERITIES:
        raise UserError(f"Severity must be a whole number from 0 (clean) to 5, not {severity!r}.")
    setting = table[name][severity - 1]
    return [*setting, FROST_SCALE[profile]] if name == "frost" else setting
