"""`dign landscape`."""

import pytest

from dign.cli.landscape import parse_radii
from dign.core.errors import UserError


def test_radii_are_counted():
    assert len(parse_radii("1:2:1000")) == 1000
    with pytest.raises(UserError, match="at most 1000"):
        parse_radii("1:2:100000000000")
