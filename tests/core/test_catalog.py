"""The names for help texts are those of the registries."""

from dign.core import catalog
from dign.methods import METHODS
from dign.models import MODELS


def test_the_names_are_those_of_the_registries():
    assert set(catalog.METHODS) == set(METHODS) and set(catalog.MODELS) == set(MODELS)
