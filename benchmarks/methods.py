"""How fast the methods are: ratios, each measured within this one run.

    python benchmarks/methods.py                 all parts on one thread, about ten minutes
    python benchmarks/methods.py augmix          one part: augmix, images, dign, best, passes or compiled
    python benchmarks/methods.py --threads 2     on two threads (PIL keeps to one)

augmix   views per second of batched AugMix against AugMix with PIL, image by image (target: 10 times, better 15)
images   what the augmentations of each method take, against a Standard step of the same batch (target: at most a tenth)
dign     a DiGN step with n = 3 against four Standard steps of the same batch (target: at most 1.03 times)
best     DiGN channels-last, by Winograd's algorithm, branches in one batch, in memory that is reused, as `dign train`
         does it, against NCHW, convolved directly, a pass for each branch (target: at least 1.3 times as fast)
passes   steps of the methods that attack, against the Standard steps that their passes amount to
compiled steps as one compiled graph (`--compile`) against the same steps as they are, on fastnet; takes minutes

The contenders of a part take turns and medians are compared, so that whatever else the machine does hits them
alike. On one thread the time is processor time, which other programs lengthen little; on several it is the
clock's, and the machine should be idle.
"""

import argparse
import random
import statistics
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from PIL import Image, ImageOps
from torch import Tensor, nn
from turns import take_turns_in_processes

from dign.core.allocator import reuse_memory
from dign.methods import (
    AFA,
    APR,
    AT,
    PRIME,
    TRADES,
    AugMax,
    AugMix,
    AutoAugment,
    CutMix,
    Cutout,
    DeepAugment,
    DiGN,
    HybridAugment,
    Method,
    MixUp,
    PatchGaussian,
    Standard,
    TrivialAugment,
)
from dign.models import build
from dign.models.winograd import use_winograd
from dign.training.compiling import CompiledStep


def take_turns(contenders: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Median seconds of each contender, after a round that does not count."""
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for turn in range(repeats + 1):
        for name, run in contenders.items():
            start = clock()
            run()
            if turn:
                seconds[name].append(clock() - start)
    return {name: statistics.median(values) for name, values in seconds.items()}


def verdict(what: str, ratio: float, target: float, *, at_least: bool) -> None:
    met = ratio >= target if at_least else ratio <= target
    print(
        f"{what}: {ratio:.2f} (target: at {'least' if at_least else 'most'} {target:g}, {'met' if met else 'MISSED'})"
    )


# AugMix with PIL, image by image: what a data loader's worker does.


def pil_level(severity: int) -> float:
    return random.uniform(0.1, severity)


def pil_signed(value: float) -> float:
    return -value if random.random() > 0.5 else value


def pil_affine(image: Image.Image, *matrix: float) -> Image.Image:
    return image.transform(image.size, Image.AFFINE, matrix, resample=Image.BILINEAR)


PIL_OPERATIONS: list[Callable[[Image.Image, float], Image.Image]] = [
    lambda image, level: ImageOps.autocontrast(image),
    lambda image, level: ImageOps.equalize(image),
    lambda image, level: ImageOps.posterize(image, 4 - int(level * 0.4)),
    lambda image, level: ImageOps.solarize(image, 256 - int(level * 25.6)),
    lambda image, level: image.rotate(pil_signed(int(level * 3)), resample=Image.BILINEAR),
    lambda image, level: pil_affine(image, 1, pil_signed(level * 0.03), 0, 0, 1, 0),
    lambda image, level: pil_affine(image, 1, 0, 0, pil_signed(level * 0.03), 1, 0),
    lambda image, level: pil_affine(image, 1, 0, pil_signed(int(level * image.width / 30)), 0, 1, 0),
    lambda image, level: pil_affine(image, 1, 0, 0, 0, 1, pil_signed(int(level * image.height / 30))),
]


def to_tensor(image: Image.Image) -> Tensor:
    return torch.from_numpy(np.array(image)).permute(2, 0, 1).float() / 255


def pil_view(image: Image.Image) -> Tensor:
    weights, share = np.random.dirichlet([1.0] * 3), np.random.beta(1.0, 1.0)
    severity = random.randint(1, 10)
    mixture = torch.zeros(3, image.height, image.width)
    for weight in weights:
        chained = image.copy()
        for _ in range(random.randint(1, 3)):
            chained = random.choice(PIL_OPERATIONS)(chained, pil_level(severity))
        mixture += float(weight) * to_tensor(chained)
    return (1 - share) * to_tensor(image) + share * mixture


def augmix(repeats: int, threads: int) -> None:
    reuse_memory()  # as `dign train` does
    images = torch.rand(512, 3, 32, 32)
    pictures = [Image.fromarray(image.mul(255).byte().permute(1, 2, 0).numpy()) for image in images[:256]]
    generator, method = torch.Generator().manual_seed(0), AugMix()
    seconds = take_turns(
        {
            "pil": lambda: torch.stack([pil_view(picture) for picture in pictures]),
            "batched": lambda: method.views(nn.Identity(), images, images, generator),
        },
        repeats,
    )
    by_pil, batched = len(pictures) / seconds["pil"], 2 * len(images) / seconds["batched"]
    print(f"AugMix views per second at 32x32: PIL {by_pil:.0f} (1 thread), batched {batched:.0f} ({threads} threads)")
    verdict("batched against PIL", batched / by_pil, 10, at_least=True)


def images(repeats: int, batch: int) -> None:
    methods: list[Method] = [
        Cutout(), MixUp(), CutMix(), AutoAugment(), TrivialAugment(), PatchGaussian(), APR(), HybridAugment(), AFA(),
        PRIME(), AugMix(), DiGN(),
    ]  # fmt: skip
    methods.append(TrivialAugment(noise=True))
    standard, generator = Stepper(Standard(), batch), torch.Generator().manual_seed(0)
    contenders = {
        repr(number): partial(method.prepare, standard.model, standard.x, standard.y, generator)
        for number, method in enumerate(methods)
    }
    seconds = take_turns({"standard": standard, **contenders}, repeats)
    print(f"batch {batch}: a Standard step of ResNet-18 {1000 * seconds['standard']:.0f} ms")
    for number, method in enumerate(methods):
        made = seconds[repr(number)]
        title = method.title + (" with noise" if getattr(method, "noise", False) else "")
        verdict(f"{title}: {1000 * made:.1f} ms, of a Standard step", made / seconds["standard"], 0.1, at_least=False)


class Stepper:
    """A method on a ResNet-18 with an optimizer, one step at a call."""

    def __init__(self, method: Method, batch: int, *, fast: bool = False, model: str = "resnet18") -> None:
        self.method = method
        self.x, self.y = torch.rand(batch, 3, 32, 32), torch.randint(10, (batch,))
        self.model = build(model, classes=10, image_size=(32, 32))
        if fast:
            self.model = self.model.to(memory_format=torch.channels_last)
            self.x = self.x.to(memory_format=torch.channels_last)
            use_winograd(self.model)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3, momentum=0.9, nesterov=True)
        self.generator = torch.Generator().manual_seed(0)

    def __call__(self) -> None:
        self.optimizer.zero_grad()
        self.method(self.model, self.x, self.y, generator=self.generator).loss.backward()
        self.optimizer.step()


class CompiledStepper(Stepper):
    """The same, as one compiled graph."""

    def __init__(self, method: Method, batch: int, model: str) -> None:
        super().__init__(method, batch, model=model)
        self.compiled = CompiledStep(method, self.model, torch.device("cpu"), "32")

    def __call__(self) -> None:
        self.optimizer.zero_grad()
        self.compiled(self.x, self.y, self.generator)[0].backward()
        self.optimizer.step()


class Convolutions:
    """The forward and backward passes of a ResNet-18's convolutions in channels-last, and nothing else.

    No setting of the loop makes a step faster than this: what is left out (norms, activations, additions, losses, the
    optimizer) can be fused into fewer passes over the memory, but the products have to be computed.
    """

    def __init__(self, batch: int) -> None:
        self.layers: list[tuple[nn.Module, torch.Size]] = []
        model = build("resnet18", classes=10, image_size=(32, 32)).to(memory_format=torch.channels_last)
        convolutions = [layer for layer in model.modules() if isinstance(layer, nn.Conv2d)]
        for layer in convolutions:
            layer.register_forward_pre_hook(lambda layer, inputs: self.layers.append((layer, inputs[0].shape[1:])))
        with torch.no_grad():
            model(torch.rand(1, 3, 32, 32))
        for layer in convolutions:
            layer._forward_pre_hooks.clear()
        self.inputs = {shape: self._images(batch, shape) for _, shape in self.layers}

    @staticmethod
    def _images(batch: int, shape: torch.Size) -> Tensor:
        images = torch.randn(batch, *shape).to(memory_format=torch.channels_last)
        return images.requires_grad_(shape[0] > 3)  # no gradient is asked for at the pixels

    def __call__(self) -> None:
        for layer, shape in self.layers:
            out = layer(self.inputs[shape])
            out.backward(out.detach())
            layer.zero_grad()
            self.inputs[shape].grad = None


def dign(repeats: int, batch: int) -> None:
    standard = Stepper(Standard(), batch)
    ways = {"branches in one batch": True, "a pass for each branch": False}
    steppers = {way: Stepper(DiGN(samples=3, together=together), batch) for way, together in ways.items()}
    seconds = take_turns({"standard": lambda: [standard() for _ in range(4)], **steppers}, repeats)
    print(f"batch {batch}: " + ", ".join(f"{name} {value:.3f} s" for name, value in seconds.items()))
    for way in ways:
        ratio = seconds[way] / seconds["standard"]
        verdict(f"a DiGN step against four Standard steps, {way}", ratio, 1.03, at_least=False)


def plain_way(batch: int) -> Callable[[], object]:
    return Stepper(DiGN(samples=3, together=False), batch)


def best_way(batch: int) -> Callable[[], object]:
    assert reuse_memory(), "needs Linux with glibc"
    return Stepper(DiGN(samples=3, together=True), batch, fast=True)


def convolutions_alone(batch: int) -> Callable[[], object]:
    assert reuse_memory(), "needs Linux with glibc"
    return Convolutions(4 * batch)


def best(repeats: int, batch: int) -> None:
    ways = {"plain": plain_way, "best": best_way, "convolutions alone": convolutions_alone}
    seconds = take_turns_in_processes({name: partial(make, batch) for name, make in ways.items()}, repeats)
    print(f"batch {batch}: " + ", ".join(f"{name} {value:.3f} s" for name, value in seconds.items()))
    verdict("the best settings against the plain way", seconds["plain"] / seconds["best"], 1.3, at_least=True)
    bound = seconds["plain"] / seconds["convolutions alone"]
    print(f"the convolutions alone, with nothing between them, against the plain way: {bound:.2f}")


def passes(repeats: int, batch: int) -> None:
    methods = (AT(), TRADES(), DeepAugment(), AugMix(), AugMax(), DiGN(), DiGN() + AugMix())
    steppers = {method.title: Stepper(method, batch) for method in methods}
    seconds = take_turns({"Standard": Stepper(Standard(), batch), **steppers}, repeats)
    for title, stepper in steppers.items():
        ratio, cost = seconds[title] / seconds["Standard"], stepper.method.cost
        print(
            f"{title:12} {cost.forward:g} forward, {cost.backward:g} backward ({cost.input_only:g} to the input "
            f"alone) = {cost.standard_steps:.1f} Standard steps; measured {ratio:.1f}"
        )


def compiled(repeats: int, batch: int) -> None:
    for method in (Standard(), DiGN(), AugMix()):  # the unrolled steps of an attack compile for minutes
        ways = {"eager": Stepper(method, batch, model="fastnet"), "compiled": CompiledStepper(method, batch, "fastnet")}
        seconds = take_turns(ways, repeats)
        times = ", ".join(f"{way} {value:.3f} s" for way, value in seconds.items())
        ratio = seconds["eager"] / seconds["compiled"]
        print(f"{method.title}, batch {batch}: {times}; compiled {ratio:.2f} times as fast", flush=True)


PARTS = {"augmix": augmix, "images": images, "dign": dign, "best": best, "passes": passes, "compiled": compiled}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=[], help=f"{', '.join(PARTS)} (default: all but the last)")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--batch", type=int, default=16, help="images per step on the ResNet-18")
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print(f"torch {torch.__version__}, {options.threads} threads")
    for part in options.parts or list(PARTS)[:-1]:
        size = options.threads if part == "augmix" else options.batch
        PARTS[part](options.repeats, size)


if __name__ == "__main__":
    main()
