"""What weights expect is said in one line."""

from dign.models.preprocessing import Preprocessing


def test_only_what_is_known_is_described():
    assert Preprocessing().describe() == ""
    known = Preprocessing(224, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225), "crop", 0.875, "bilinear")
    assert known.describe() == (
        "224 pixels, crop fraction 0.875, bilinear, mean 0.485, 0.456, 0.406, std 0.229, 0.224, 0.225"
    )
