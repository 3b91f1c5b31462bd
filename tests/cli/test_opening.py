import pytest
from rich.console import Console

from dign.cli.opening import OF_MODEL, open_model, show_progress
from dign.core.errors import UserError
from dign.parallel.team import SINGLE_PROCESS

OPTIONS = {"data": None, "model": "hub:there", "out": None, "skip_unreadable": False, **dict.fromkeys(OF_MODEL)}


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, "name them with --data"),
        ({"data": "digits", "weights": "a.safetensors"}, "weights and settings of its own: leave out --weights"),
    ],
)
def test_a_model_needs_images_and_one_set_of_weights(given, sentence):
    with pytest.raises(UserError, match=sentence):
        open_model({**OPTIONS, **given}, Console(quiet=True), SINGLE_PROCESS)


def test_no_bar_outside_a_terminal(capsys):
    with show_progress(Console(stderr=True), "evaluate") as follow:
        follow(1, 2)
    assert capsys.readouterr() == ("", "")
