"""Real torchvision, and with it timm, beside a build of torch for the CPU.

pip's torchvision has compiled operators that need CUDA's libraries. Where torch was built without CUDA they cannot be
loaded, and torchvision's import fails at two fake kernels, which it registers without asking. Once the schemas of these
two operators are declared it imports, and everything that is written in Python works: models, transforms, data sets.
"""

from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

SCHEMA = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"


def declare_missing_operators():
    """Declare the operators if torchvision was compiled for CUDA and torch was not; returns what must stay alive."""
    spec = find_spec("torchvision")
    if spec is None or spec.origin is None or torch.version.cuda is not None:
        return None
    if "+cu" not in Path(spec.origin).with_name("version.py").read_text():
        return None
    library = torch.library.Library("torchvision", "FRAGMENT")
    for name in ("nms", "qnms"):
        library.define(name + SCHEMA)
    return library


def need(name, extra):
    """The library `name`, or a skip that says why it cannot be used."""
    return pytest.importorskip(name, reason=f"needs the extra dign[{extra}]", exc_type=(ImportError, RuntimeError))
