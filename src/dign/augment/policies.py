"""AutoAugment and TrivialAugment: one or two operations for each image, drawn from a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from dign.augment import enhance, geometry
from dign.augment.operations import autocontrast, equalize, posterize
from dign.core.compiled_draws import define_draw
from dign.core.errors import UserError
from dign.core.image_rng import global_batch_size, local_slice
from dign.core.pixels import to_float, to_uint8
from dign.core.placement import copy_to_device
from dign.core.seeds import host_generator

WARPS = ("shear-x", "shear-y", "translate-x", "translate-y", "rotate")
FACTORS = ("brightness", "color", "contrast", "sharpness")
SIGNED = (*WARPS, *FACTORS)
"""Operations whose amount gets a random sign."""
OPERATIONS = ("nothing", *SIGNED, "posterize", "solarize", "autocontrast", "equalize", "invert")

AUTO_AUGMENT_CIFAR10 = (
    (("invert", 0.1, 0), ("contrast", 0.2, 6)),
    (("rotate", 0.7, 2), ("translate-x", 0.3, 9)),
    (("sharpness", 0.8, 1), ("sharpness", 0.9, 3)),
    (("shear-y", 0.5, 8), ("translate-y", 0.7, 9)),
    (("autocontrast", 0.5, 0), ("equalize", 0.9, 0)),
    (("shear-y", 0.2, 7), ("posterize", 0.3, 7)),
    (("color", 0.4, 3), ("brightness", 0.6, 7)),
    (("sharpness", 0.3, 9), ("brightness", 0.7, 9)),
    (("equalize", 0.6, 0), ("equalize", 0.5, 0)),
    (("contrast", 0.6, 7), ("sharpness", 0.6, 5)),
    (("color", 0.7, 7), ("translate-x", 0.5, 8)),
    (("equalize", 0.3, 0), ("autocontrast", 0.4, 0)),
    (("translate-y", 0.4, 3), ("sharpness", 0.2, 6)),
    (("brightness", 0.9, 6), ("color", 0.2, 8)),
    (("solarize", 0.5, 2), ("invert", 0.0, 0)),
    (("equalize", 0.2, 0), ("autocontrast", 0.6, 0)),
    (("equalize", 0.2, 0), ("equalize", 0.6, 0)),
    (("color", 0.9, 9), ("equalize", 0.6, 0)),
    (("autocontrast", 0.8, 0), ("solarize", 0.2, 8)),
    (("brightness", 0.1, 3), ("color", 0.7, 0)),
    (("solarize", 0.4, 5), ("autocontrast", 0.9, 0)),
    (("translate-y", 0.9, 9), ("translate-y", 0.7, 9)),
    (("autocontrast", 0.9, 0), ("solarize", 0.8, 3)),
    (("equalize", 0.8, 0), ("invert", 0.1, 0)),
    (("translate-y", 0.7, 9), ("autocontrast", 0.9, 0)),
)
"""The 25 published sub-policies for CIFAR-10 (Cubuk et al., 2019): twice operation, probability, level 0 to 9."""

TRIVIAL = ("nothing", *WARPS, *FACTORS, "posterize", "solarize", "autocontrast", "equalize")
"""The operations of TrivialAugment, each as likely."""
TRIVIAL_LEVELS = 31


class Assignment(NamedTuple):
    """What happens to each image, on the host."""

    operation: Tensor
    """Index into OPERATIONS (N,)."""
    amount: Tensor
    """(N,): the slope of a shear, pixels, degrees, a change of the factor, bits, or a threshold."""


def auto_augment(x: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Images after one of AutoAugment's sub-policies for CIFAR-10 each.

    Args:
        x: Images (N,3,H,W) in [0,1].
        generator: The source of all random numbers, on the device of `x`.

    >>> auto_augment(torch.rand(4, 3, 8, 8)).shape
    torch.Size([4, 3, 8, 8])
    """
    if torch.compiler.is_compiling():
        augmented: Tensor = _compiled_auto(x)
        return augmented
    draw = _draw_on_host(len(x), 5, generator)
    policy = _pick(draw[:, 0], len(AUTO_AUGMENT_CIFAR10))
    images = to_uint8(x)
    for number in range(2):
        rows = [row[number] for row in AUTO_AUGMENT_CIFAR10]
        operations = torch.tensor([OPERATIONS.index(name) for name, _, _ in rows])
        amounts = torch.tensor([auto_amounts(name, x.shape[-2:])[level] for name, _, level in rows])
        chance, sign = draw[:, 1 + number], draw[:, 3 + number]
        applied = chance < torch.tensor([probability for _, probability, _ in rows])[policy]
        operation = torch.where(applied, operations[policy], 0)
        images = apply(images, Assignment(operation, _sign(operation, amounts[policy], sign)))
    return to_float(images, x.dtype)


def trivial_augment(x: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Images after one random operation at a random level each: TrivialAugment, in its wide form.

    Args:
        x: Images (N,3,H,W) in [0,1].
        generator: The source of all random numbers, on the device of `x`.

    >>> trivial_augment(torch.rand(4, 3, 8, 8)).shape
    torch.Size([4, 3, 8, 8])
    """
    if torch.compiler.is_compiling():
        augmented: Tensor = _compiled_trivial(x)
        return augmented
    draw = _draw_on_host(len(x), 3, generator)
    number, level = _pick(draw[:, 0], len(TRIVIAL)), _pick(draw[:, 1], TRIVIAL_LEVELS)
    operation = torch.tensor([OPERATIONS.index(name) for name in TRIVIAL])[number]
    amount = torch.stack([trivial_amounts(name) for name in TRIVIAL])[number, level]
    return to_float(apply(to_uint8(x), Assignment(operation, _sign(operation, amount, draw[:, 2]))), x.dtype)


def auto_amounts(name: str, size: Sequence[int]) -> Tensor:
    """The amounts of an operation at AutoAugment's ten levels, for images of a size (H,W).

    >>> auto_amounts("rotate", (32, 32))[9].item()
    30.0
    """
    if name == "posterize":
        return 8 - torch.linspace(0, 4, 10, dtype=torch.float32).round()
    if name == "solarize":
        return torch.linspace(255, 0, 10, dtype=torch.float32)
    side = size[0] if name == "translate-y" else size[1]
    largest = {"shear": 0.3, "translate": 150 / 331 * side, "rotate": 30.0}.get(name.split("-")[0], 0.9)
    return torch.linspace(0, largest, 10, dtype=torch.float32)


def trivial_amounts(name: str) -> Tensor:
    """The amounts of an operation at TrivialAugment's 31 levels.

    >>> trivial_amounts("translate-x")[30].item()
    32.0
    """
    if name == "posterize":
        return 8 - torch.linspace(0, 6, TRIVIAL_LEVELS, dtype=torch.float32).round()
    if name == "solarize":
        return torch.linspace(255, 0, TRIVIAL_LEVELS, dtype=torch.float32)
    largest = {"translate": 32.0, "rotate": 135.0}.get(name.split("-")[0], 0.99)
    return torch.linspace(0, largest, TRIVIAL_LEVELS, dtype=torch.float32)


def apply(images: Tensor, assignment: Assignment) -> Tensor:
    """The images, each after its operation; warps take the nearest pixel and fill with black.

    They are uint8, (N,3,H,W) or gray (N,1,H,W).

    Raises:
        UserError: The images have another number of channels.

    >>> image = torch.tensor([[[[1, 2, 3]]] * 3], dtype=torch.uint8).view(1, 3, 1, 3)
    >>> right = Assignment(torch.tensor([OPERATIONS.index("translate-x")]), torch.tensor([1.0]))
    >>> apply(image, right)[0, 0]
    tensor([[0, 1, 2]], dtype=torch.uint8)
    """
    if images.shape[1] not in (1, 3):
        raise UserError(f"AutoAugment and TrivialAugment take color or gray images, not {images.shape[1]} channels.")
    order = assignment.operation.argsort(stable=True)
    sizes = torch.bincount(assignment.operation, minlength=len(OPERATIONS)).tolist()
    places = copy_to_device(order, images.device).split(sizes)
    amounts = copy_to_device(assignment.amount[order], images.device).split(sizes)
    done = images.clone()
    for name, place, amount in list(zip(OPERATIONS, places, amounts, strict=True))[1:]:
        if len(place):
            done.index_copy_(0, place, _apply_one(name, images.index_select(0, place), amount))
    return done


def _apply_one(name: str, images: Tensor, amount: Tensor) -> Tensor:
    if name in WARPS:
        return geometry.warp(images.float(), _matrices(name, amount, images), mode="nearest").to(torch.uint8)
    if name in FACTORS:
        enhanced: Tensor = getattr(enhance, name)(images, 1 + amount)
        return enhanced
    if name == "posterize":
        return posterize(images, amount)
    if name == "solarize":
        return torch.where(images >= amount.view(-1, 1, 1, 1), enhance.invert(images), images)  # a threshold may be 0
    return {"autocontrast": autocontrast, "equalize": equalize, "invert": enhance.invert}[name](images)


def _matrices(name: str, amount: Tensor, images: Tensor) -> Tensor:
    none = torch.zeros_like(amount)
    if name == "rotate":
        return geometry.rotation(amount)
    if name == "shear-x":
        return geometry.shear(amount, none, images.shape[-2:])
    if name == "shear-y":
        return geometry.shear(none, amount, images.shape[-2:])
    pixels = -amount.trunc()
    return geometry.shift(pixels, none) if name == "translate-x" else geometry.shift(none, pixels)


def _draw_on_host(count: int, numbers: int, generator: torch.Generator | None) -> Tensor:
    """Numbers in [0,1) for each image of this process, (N,numbers): the host has to know what each call gets."""
    size = (global_batch_size(count, generator), numbers)
    return local_slice(torch.rand(size, generator=host_generator(generator), dtype=torch.float32), generator)


def _pick(draw: Tensor, count: int) -> Tensor:
    return (draw * count).long().clamp_(max=count - 1)


def _sign(operation: Tensor, amount: Tensor, draw: Tensor) -> Tensor:
    signed = torch.tensor([name in SIGNED for name in OPERATIONS])[operation]
    return torch.where(signed & (draw < 0.5), -amount, amount)


_compiled_auto = define_draw("auto_augment(Tensor x) -> Tensor", auto_augment, lambda x: x.new_empty(x.shape))
_compiled_trivial = define_draw("trivial_augment(Tensor x) -> Tensor", trivial_augment, lambda x: x.new_empty(x.shape))
