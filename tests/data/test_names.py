"""Names of data sets for results and help texts."""

import pytest

from dign.data.loading import SOURCES
from dign.data.names import NAMES, hide_folder_path


def test_the_names_are_those_of_the_sources():
    assert list(NAMES) == list(SOURCES)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("cifar10", "cifar10"),
        ("folder:/home/somebody/photographs", "folder:photographs"),
        ("folder:photographs/", "folder:photographs"),
        (r"folder:C:\pictures\cats", "folder:cats"),
        ("folder:.", "folder:"),
    ],
)
def test_a_path_is_reduced_to_the_name_of_its_folder(name, shown):
    assert hide_folder_path(name) == shown
