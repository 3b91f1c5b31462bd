"""The examples run, and what they train works."""

import importlib.util
import runpy
from pathlib import Path

import pytest
import torch

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


def test_the_bare_loop():
    assert runpy.run_path(str(EXAMPLES / "bare_loop.py"))["main"](epochs=3) > 90


@pytest.mark.skipif(importlib.util.find_spec("lightning") is None, reason="needs the extra dign[lightning]")
def test_the_lightning_module():
    assert runpy.run_path(str(EXAMPLES / "lightning_module.py"))["main"](epochs=2) > 90


def test_the_corruptions_as_transforms():
    clean, c_bar = runpy.run_path(str(EXAMPLES / "corruption_transforms.py"))["main"](epochs=3)
    assert clean > 90 and c_bar > 80
