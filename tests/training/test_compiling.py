"""The step of every method is one graph, and computes what the eager step computes."""

import copy
import os
import shutil

import pytest
import torch

from dign.core.seeds import make_generator
from dign.methods import METHODS, Augmentation, AugMix, DiGN, Sum
from dign.models import build
from dign.training.compiling import CompiledStep

CPU = torch.device("cpu")
FEW_STEPS = {key: {"steps": 2} for key in ("at", "trades", "augmax", "fwat", "llr")}
"""A loop is unrolled: two steps of an attack show what seven do, sooner."""
AUGMENTATIONS = [kind() for kind in METHODS.values() if issubclass(kind, Augmentation)]
SUMS = {"sum": DiGN() + AugMix(), "augmentations": Sum([*AUGMENTATIONS, DiGN()])}
LOSSES = {key: kind for key, kind in METHODS.items() if not issubclass(kind, Augmentation)}
CHOSEN = {key: kind(**FEW_STEPS.get(key, {})) for key, kind in LOSSES.items()} | SUMS


@pytest.mark.slow
@pytest.mark.parametrize("key", CHOSEN)
def test_the_step_of_a_method_compiles_without_a_break_and_equals_the_eager_step(key):
    torch._dynamo.reset()
    method, x, y = CHOSEN[key], torch.rand(4, 3, 8, 8), torch.arange(4)
    model = build("tinynet", classes=10, image_size=(8, 8))
    twin = copy.deepcopy(model)
    step = CompiledStep(method, model, CPU, "32", backend="eager")
    for number in range(2):
        loss, terms = step(x, y, make_generator(0, "method", number))
        loss.backward()
        expected = method(twin, x, y, generator=make_generator(0, "method", number))
        expected.loss.backward()
        assert torch.equal(loss, expected.loss) and terms.keys() == expected.terms.keys()
    assert model.training and all(weight.requires_grad for weight in twin.parameters() if weight.grad is not None)
    for ours, theirs in zip(model.parameters(), twin.parameters(), strict=True):
        assert ours.grad is None if theirs.grad is None else torch.equal(ours.grad, theirs.grad)
    for ours, theirs in zip(model.buffers(), twin.buffers(), strict=True):
        assert torch.equal(ours, theirs)


@pytest.mark.slow
def test_mixed_precision_compiles_too():
    torch._dynamo.reset()
    model = build("tinynet", classes=10, image_size=(8, 8))
    step = CompiledStep(METHODS["dign"](), model, CPU, "bf16", backend="aot_eager")
    loss, _ = step(torch.rand(4, 3, 8, 8), torch.arange(4), make_generator(0, "method"))
    loss.backward()
    assert loss.dtype == torch.float32 and bool(loss.isfinite())


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which(os.environ.get("CXX", "g++")), reason="there is no C++ compiler")
def test_gradients_of_the_compiled_step_in_mixed_precision_are_those_of_the_eager_one():
    """With the real compiler, which rounds to bfloat16 less often: a comparison of values for equality fails there."""
    torch._dynamo.reset()
    x, y = torch.rand(16, 3, 8, 8), torch.arange(16) % 10
    model = build("tinynet", classes=10, image_size=(8, 8))
    twin = copy.deepcopy(model)
    CompiledStep(METHODS["standard"](), model, CPU, "bf16")(x, y, make_generator(0, "method"))[0].backward()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        METHODS["standard"]()(twin, x, y).loss.backward()
    ours, theirs = (torch.cat([weight.grad.flatten() for weight in each.parameters() if weight.grad is not None])
                    for each in (model, twin))  # fmt: skip
    assert torch.cosine_similarity(ours, theirs, dim=0) > 0.98
