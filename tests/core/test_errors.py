"""Messages are one readable line, and unknown names are answered with the nearest."""

import pytest
import torch

from dign.core.errors import (
    MAX_MESSAGE_LENGTH,
    UserError,
    find_nearest_name,
    is_out_of_memory,
    join_names,
    quote_path,
    summarize_error,
    unknown_name,
)


def test_a_message_is_one_line_without_control_characters_and_of_limited_length():
    assert str(UserError("a\nb\x1b[31mc")) == "a b\ufffd[31mc"
    assert str(UserError("x" * (MAX_MESSAGE_LENGTH + 5))) == "x" * MAX_MESSAGE_LENGTH + "..."


def test_an_unknown_name_suggests_the_nearest_and_lists_all():
    assert str(unknown_name("model", "resnet81", ["resnet18", "fastnet"])) == (
        "Unknown model 'resnet81'. Did you mean 'resnet18'? Known: fastnet, resnet18."
    )
    assert str(unknown_name("model", "qqq", ["fastnet"])) == "Unknown model 'qqq'. Known: fastnet."
    assert find_nearest_name("digit", ["digits", "cifar10"]) == "digits" and find_nearest_name("x", ["digits"]) is None


def test_many_names_are_cut_short():
    assert join_names(["a"]) == "a" and join_names(list("abcdef")) == "a, b, c, d, e and 1 more"


@pytest.mark.parametrize(
    ("path", "typed"), [("run", "run"), ("my run", "'my run'"), ("-x", "./-x"), ("$HOME", "'$HOME'")]
)
def test_a_path_can_be_pasted_into_a_shell(path, typed):
    assert quote_path(path) == typed


def test_an_error_is_summarized_by_its_first_line_or_its_type():
    assert summarize_error(ValueError("first\nsecond")) == "first" and summarize_error(KeyError()) == "KeyError"


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (MemoryError(), True),
        (torch.OutOfMemoryError("x"), True),
        (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"), True),
        (RuntimeError("shapes differ"), False),
    ],
)
def test_running_out_of_memory_is_recognized(error, expected):
    assert is_out_of_memory(error) is expected
