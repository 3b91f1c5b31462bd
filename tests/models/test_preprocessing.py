"""What weights expect is said in one line."""

import pytest

from dign.core.errors import UserError
from dign.models.preprocessing import Preprocessing


def test_only_what_is_known_is_described():
    assert Preprocessing().describe() == ""
    known = Preprocessing(224, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225), "crop", 0.875, "bilinear")
    assert known.describe() == (
        "224 pixels, crop fraction 0.875, bilinear, mean 0.485, 0.456, 0.406, std 0.229, 0.224, 0.225"
    )


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"size": 0}, "size must be from 1 to 4096 pixels, not 0"),
        ({"mean": (0.5, 0.5)}, "mean must be three numbers, not 0.5, 0.5"),
        ({"mean": (float("nan"), 0.5, 0.5)}, "mean must be three numbers, not nan"),
        ({"std": (0.0, 1.0, 1.0)}, "std must be three numbers above 0, not 0.0, 1.0, 1.0"),
        ({"crop_fraction": 1.5}, "crop_fraction must be from 0.1 to 1, not 1.5"),
        ({"fit": "stretch"}, "Unknown fit 'stretch'"),
    ],
)
def test_values_are_checked(values, message):
    with pytest.raises(UserError, match=message):
        Preprocessing(**values)
