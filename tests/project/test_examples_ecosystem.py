"""The examples for other libraries run, and what they train works; skipped where a library cannot be imported."""

import runpy
from importlib import import_module
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def need(*modules, extra):
    for module in modules:
        try:
            import_module(module)
        except (ImportError, RuntimeError) as error:
            pytest.skip(f"needs the extra dign[{extra}]: {error}")


@pytest.mark.slow
def test_the_trainer_of_hugging_face():
    need("accelerate", "transformers", extra="transformers")
    assert runpy.run_path(str(EXAMPLES / "huggingface_trainer.py"))["main"](epochs=2) > 85


@pytest.mark.slow
def test_the_training_task_of_timm():
    need("torchvision", "timm.task", extra="timm")
    assert runpy.run_path(str(EXAMPLES / "timm_task.py"))["main"](epochs=2) > 85
