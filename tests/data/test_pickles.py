import pickle
import random

import numpy as np
import pytest

from dign.core.errors import UserError
from dign.data.pickles import read_pickled_dictionary


def test_an_official_pickle_is_read_exactly(pickle2):
    data = np.random.default_rng(0).integers(0, 256, (5, 3072), dtype=np.uint8)
    names = [b"a_%d.png" % index for index in range(300)]  # more than 256 entries: long memo indices
    found = read_pickled_dictionary(pickle2({b"data": data, b"labels": [1, 2, 3, 300, 0], b"names": names}), "x")
    assert np.array_equal(found[b"data"], data)
    assert found[b"labels"] == [1, 2, 3, 300, 0]
    assert found[b"names"] == names


def test_what_python_itself_makes_of_the_same_pickle_agrees(pickle2):
    data = np.random.default_rng(1).integers(0, 256, (3, 3072), dtype=np.uint8)
    theirs = pickle.loads(pickle2({b"data": data}), encoding="bytes")
    assert np.array_equal(theirs[b"data"], data)


def test_pickles_of_todays_numpy_are_read_too():
    data = np.arange(6144, dtype=np.uint8).reshape(2, 3072)
    for array in (data, np.asfortranarray(data)):
        found = read_pickled_dictionary(pickle.dumps({b"data": array}, protocol=4), "x")
        assert np.array_equal(found[b"data"], data)


class Payload:
    def __init__(self, trace) -> None:
        self.trace = trace

    def __reduce__(self):
        return (open, (str(self.trace), "w"))


@pytest.mark.parametrize("protocol", range(6))
def test_code_is_refused_and_does_not_run(tmp_path, protocol):
    trace = tmp_path / "trace"
    hostile = pickle.dumps({b"data": Payload(trace)}, protocol=protocol)
    with pytest.raises(UserError, match="data_batch_1 is refused"):
        read_pickled_dictionary(hostile, "data_batch_1")
    assert not trace.exists()
    pickle.loads(hostile)[b"data"].close()
    assert trace.exists(), "the payload would have left a trace"


@pytest.mark.parametrize(
    "hostile",
    [
        b"cos\nsystem\n(S'true'\ntR.",
        b"\x80\x04\x8c\x08builtins\x8c\x04eval\x93\x8c\x011\x85R.",
        b"\x80\x02cnumpy\nload\n.",
        b"\x80\x02c__builtin__\ngetattr\n.",
    ],
)
def test_other_ways_to_name_code_are_refused(hostile):
    with pytest.raises(UserError, match="refers to code"):
        read_pickled_dictionary(hostile, "x")


def test_keys_of_nested_tuples_do_not_hang():
    """((((),()),((),())), ...): hashing 60 levels would take longer than the universe is old."""
    hostile = b"\x80\x02}" + b")" + b"q\x01h\x01\x86" * 60 + b"K\x01s."
    with pytest.raises(UserError, match="refused"):
        read_pickled_dictionary(hostile, "x")


def test_arrays_of_anything_but_bytes_are_refused():
    with pytest.raises(UserError, match="other than bytes"):
        read_pickled_dictionary(pickle.dumps({b"data": np.zeros(3)}, protocol=4), "x")


@pytest.mark.parametrize("value", [b"", b"\x80\x02", b".", b"\x80\x02N.", b"not a pickle", b"\x80\x02]."])
def test_what_is_no_dictionary_is_one_sentence(value):
    with pytest.raises(UserError):
        read_pickled_dictionary(value, "x")


def test_any_damage_gives_a_dictionary_or_a_clear_error(pickle2):
    """A few thousand mutations of a good file: none crashes, hangs or eats the memory."""
    draw = random.Random(0)
    good = pickle2({b"data": np.zeros((1, 3072), np.uint8), b"labels": list(range(8)), b"names": [b"x"] * 270})
    for _ in range(3000):
        bad = bytearray(good)
        for _ in range(draw.choice([1, 1, 2, 8])):
            place = draw.randrange(len(bad))
            bad[place] = draw.randrange(256)
        if draw.random() < 0.3:
            del bad[draw.randrange(len(bad)) :]
        try:
            assert isinstance(read_pickled_dictionary(bytes(bad), "x"), dict)
        except UserError as error:
            assert str(error).startswith("x is ")
