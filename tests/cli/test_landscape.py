"""`dign landscape`."""

import pytest

from dign.cli.landscape import parse_radii
from dign.core.errors import UserError


def test_radii_are_counted():
    assert len(parse_radii("1:2:1000")) == 1000
    with pytest.raises(UserError, match="at most 1000"):
        parse_radii("1:2:100000000000")


def test_radii() -> None:
    assert parse_radii("1,2.5") == (1.0, 2.5)
    assert parse_radii("1:2:3") == (1.0, 1.5, 2.0)
    for wrong in ("", "1:2", "1:2:1", "a,b"):
        with pytest.raises(UserError):
            parse_radii(wrong)
