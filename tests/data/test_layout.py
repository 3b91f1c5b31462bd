"""Pictures with their classes, and a test split that is cut from them."""

import numpy as np

from dign.data.layout import LabeledPictures, Layout, cut_test
from dign.data.pictures import Pictures


def make(count):
    names = [f"{number}.jpg" for number in range(count)]
    return LabeledPictures(Pictures.from_paths(names), np.arange(count) % 2)


def test_pictures_become_objects_one_by_one():
    pictures = list(make(3))
    assert [(each.name, each.label, str(each.read())) for each in pictures] == [
        ("0.jpg", 0, "0.jpg"),
        ("1.jpg", 1, "1.jpg"),
        ("2.jpg", 0, "2.jpg"),
    ]


def test_a_fifth_of_every_class_is_cut_off():
    layout = cut_test(Layout(("a", "b"), {"train": make(20)}, "x"))
    train, test = layout.splits["train"], layout.splits["test"]
    assert np.bincount(test.labels).tolist() == [2, 2] and np.bincount(train.labels).tolist() == [8, 8]
    names = [each.name for split in (train, test) for each in split]
    assert sorted(names) == sorted(f"{number}.jpg" for number in range(20))
