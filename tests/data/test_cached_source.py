"""Sources in the cache are built once, resized once, and built again when they change."""

from dataclasses import replace

import pytest
import torch

from dign.core.progress import ignore_progress
from dign.data.sources.cifar import CIFAR10

SMALL10 = replace(CIFAR10, array_sha256={})


@pytest.fixture
def content(make_images):
    return (*make_images(50, seed=1), *make_images(20, seed=2))


@pytest.fixture
def official(tmp_path, write_cifar10, content):
    return write_cifar10(tmp_path / "given" / "cifar-10-batches-py", *content)


def left_in(root):
    return sorted(path.name for path in root.iterdir() if not path.name.endswith(".lock")) if root.exists() else []


def test_another_data_set_under_the_same_name_is_resized_anew(tmp_path, official, write_cifar10, make_images):
    root = tmp_path / "root"
    SMALL10.fetch(root, ignore_progress, official)
    before = SMALL10.read(root, 8, ignore_progress).train.images.clone()
    other = write_cifar10(tmp_path / "other", *make_images(50, seed=8), *make_images(20, seed=9))
    SMALL10.fetch(root, ignore_progress, other)
    assert not torch.equal(before, SMALL10.read(root, 8, ignore_progress).train.images)
    assert len([name for name in left_in(root) if name.startswith("cifar10-8px")]) == 1
