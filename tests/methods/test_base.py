"""What every method and every sum of methods promises, in every setting that a training loop may have."""

import shutil
from copy import deepcopy
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from dign.core.errors import UserError
from dign.core.seeds import make_generator
from dign.data.loading import load
from dign.methods import (
    AT,
    CURE,
    LLR,
    METHODS,
    RSE,
    TRADES,
    AugMax,
    Augmentation,
    AugMix,
    CutMix,
    DeepAugment,
    DiGN,
    DiGNWithoutCR,
    GradientRegularization,
    Method,
    MixUp,
    Standard,
)
from dign.methods.attacks import cross_entropy_of
from dign.models import build, channel_statistics

EVERY = [*METHODS, "dign+augmix"]
# Percent of the digits after three epochs; chance is 10. DeepAugment's distortions are strong at 8x8.
LEAST = {"deepaugment": 80, "noisy-features": 80, "noisymix": 80, "gradient-regularization": 85, "cure": 85, "llr": 85}
MILD = {
    "gradient-regularization": {},
    "cure": {"weight": 0.3, "step": 0.5},
    "llr": {"weight": 1.0, "slope_weight": 0.5, "steps": 3},
}
DRAWS_NOTHING = ("standard", "at", "fwat", "gradient-regularization", "cure")


def make(key, **settings):
    return DiGN(**settings) + AugMix(**settings) if key == "dign+augmix" else METHODS[key](**settings)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.fixture
def model():
    return build("tinynet", classes=5, image_size=(8, 8))


@pytest.mark.parametrize("key", EVERY)
def test_float32(key, model, x, y):
    outcome = make(key)(model, x, y, generator=generator())
    outcome.loss.backward()
    assert outcome.loss.dtype == torch.float32 and outcome.loss.shape == ()
    assert outcome.logits.shape == (6, 5) and not outcome.logits.requires_grad
    for parameter in model.parameters():
        assert not parameter.requires_grad or torch.isfinite(parameter.grad).all()


@pytest.mark.parametrize("key", EVERY)
def test_bfloat16_throughout(key, model, x, y):
    outcome = make(key)(model.bfloat16(), x.bfloat16(), y, generator=generator())
    outcome.loss.backward()
    assert torch.isfinite(outcome.loss)


@pytest.mark.parametrize("key", EVERY)
def test_one_image(key, recorder, x, y):
    """With a model that can be trained on one."""
    outcome = make(key)(recorder, x[:1], y[:1], generator=generator())
    outcome.loss.backward()
    assert outcome.logits.shape[0] == 1 and torch.isfinite(outcome.loss)


@pytest.mark.parametrize(
    ("key", "settings"),
    [("dign", {"samples": 2.5}), ("augmix", {"width": 1.5}), ("augmix", {"depth": 1.5}), ("rse", {"ensemble": 2.0}),
     ("at", {"steps": 1.5}), ("augmax", {"steps": 1.5}), ("deepaugment", {"hidden": 1.5}), ("dign", {"samples": True})],
)  # fmt: skip
def test_counts_are_whole_numbers(key, settings):
    with pytest.raises(UserError, match=rf"{next(iter(settings))} must be a whole number of at least 1, not"):
        make(key, **settings)


@pytest.mark.parametrize("key", EVERY)
def test_autocast(key, model, x, y):
    method = make(key)
    exact = method(model, x, y, generator=generator()).loss.item()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        outcome = method(model, x, y, generator=generator())
        outcome.loss.backward()
    assert outcome.loss.dtype == torch.float32
    assert outcome.loss.item() == pytest.approx(exact, rel=0.15, abs=0.05)
    assert all(p.grad is None or torch.isfinite(p.grad).all() for p in model.parameters())


@pytest.mark.parametrize("key", ["augmix", "augmax", "deepaugment", "dign"])
def test_autocast_leaves_the_images_their_precision(key, recorder, x, y):
    plain = make(key).views(recorder, x, y, generator())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        cast = make(key).views(recorder, x, y, generator())
    for exact, view in zip(plain, cast, strict=True):
        assert view.dtype == torch.float32
        assert key == "augmax" or torch.equal(view, exact)  # whose weights follow the model's rounded gradients


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs a C++ compiler on a CPU")
@pytest.mark.parametrize(("key", "backend"), [("dign", "inductor"), ("at", "aot_eager"), ("augmax", "aot_eager")])
def test_compiled(key, backend, x, y):
    """An attack needs a second graph, in eval mode and without parameters to differentiate, and gets one."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(192, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 5))
    expected = make(key)(deepcopy(model), x, y, generator=generator()).loss
    outcome = make(key)(torch.compile(model, backend=backend), x, y, generator=generator())
    torch.testing.assert_close(outcome.loss, expected, atol=1e-4, rtol=1e-4)
    outcome.loss.backward()
    assert all(module.training for module in model.modules())
    assert all(parameter.grad is not None for parameter in model.parameters())


@pytest.mark.parametrize("bfloat16", [False, True])
@pytest.mark.parametrize("key", EVERY)
def test_extreme_logits_stay_finite(key, bfloat16, x, y):
    """Logits of +-1e4 that saturate, in float32 and under autocast: loss, terms and gradients stay finite."""

    class Extreme(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(192, 5)

        def forward(self, x):
            return 1e4 * torch.tanh(100 * self.linear(x.flatten(1)))

    model = Extreme()
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=bfloat16):
        outcome = make(key)(model, x, y, generator=generator())
    outcome.loss.backward()
    assert outcome.logits.abs().max() > 9e3
    assert torch.isfinite(outcome.loss) and all(torch.isfinite(term) for term in outcome.terms.values())
    assert torch.isfinite(model.linear.weight.grad).all()


@pytest.mark.parametrize("key", [key for key in EVERY if key != "noisymix"])  # whose noise is drawn pass by pass
def test_branches_apart_or_together_are_the_same_without_batch_norm(key, recorder, x, y):
    losses = [make(key, together=together)(recorder, x, y, generator=generator()).loss for together in (True, False)]
    torch.testing.assert_close(*losses)


@pytest.mark.parametrize("key", EVERY)
def test_label_smoothing_reaches_the_cross_entropy(key, recorder, x, y):
    losses = [make(key, label_smoothing=s)(recorder, x, y, generator=generator()).loss.item() for s in (0.0, 0.5)]
    assert abs(losses[0] - losses[1]) > 1e-4


@pytest.mark.parametrize("key", EVERY)
def test_the_generator_decides_and_the_batch_is_left_alone(key, recorder, x, y):
    before = x.clone()
    method = make(key)
    first, again, other = (method(recorder, x, y, generator=generator(seed)).loss.item() for seed in (3, 3, 4))
    assert first == again
    assert (first == other) == (key in DRAWS_NOTHING)
    assert torch.equal(x, before)


@pytest.mark.parametrize("key", ["at", "trades", "augmax", "fwat", "cure", "llr"])
def test_attacks_leave_batch_norm_and_modes_alone(key, normed_recorder, x, y):
    normed_recorder.train()
    make(key)(normed_recorder, x, y, generator=generator())
    assert all(module.training for module in normed_recorder.modules())
    assert normed_recorder.body[1].num_batches_tracked == 1, "only the training pass is counted"


def test_through_a_fabric_wrapper(model, x, y):
    from lightning_fabric import Fabric

    fabric = Fabric(accelerator="cpu", devices=1, precision="bf16-mixed")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    wrapped, optimizer = fabric.setup(model, optimizer)
    for key in ("at", "trades", "augmax", "dign+augmix", "gradient-regularization", "cure", "llr", "noisy-features"):
        wrapped.train()
        fabric.backward(make(key)(wrapped, x, y, generator=generator()).loss)
        optimizer.step()
        assert all(module.training for module in wrapped.modules())


class Wrapped(nn.Module):
    """A model whose output holds its logits in the ways that libraries have."""

    def __init__(self, model: nn.Module, way: str) -> None:
        super().__init__()
        self.model, self.way = model, way

    def forward(self, x):
        logits = self.model(x)
        ways = {
            "tuple": (logits, "features"),
            "dictionary": {"features": x, "logits": logits},
            "object": SimpleNamespace(loss=None, logits=logits, hidden_states=None),
        }
        return ways[self.way]


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("way", ["tuple", "dictionary", "object"])
@pytest.mark.parametrize("key", EVERY)
def test_logits_are_found_in_whatever_the_model_returns(key, way, together, recorder, x, y):
    method = make(key, together=together)
    expected = method(recorder, x, y, generator=generator())
    outcome = method(Wrapped(recorder, way), x, y, generator=generator())
    assert torch.equal(outcome.loss, expected.loss) and torch.equal(outcome.logits, expected.logits)
    predictions = [method.predict(model, x, generator()) for model in (recorder, Wrapped(recorder, way))]
    assert torch.equal(*predictions)


@pytest.mark.parametrize("key", EVERY)
def test_an_output_without_logits_is_one_clear_error(key, x, y):
    class Silent(nn.Module):
        def forward(self, x):
            return {"features": x}

    with pytest.raises(UserError, match="returned a dict without logits"):
        make(key)(Silent(), x, y, generator=generator())
    with pytest.raises(UserError, match="returned a dict without logits"):
        make(key).predict(Silent(), x, generator())


@pytest.fixture
def float64_by_default():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
@pytest.mark.parametrize("key", EVERY)
def test_a_default_type_of_float64(key, kind, float64_by_default, recorder, x, y):
    """Views are what they are without it; images, loss and gradients keep the model's type."""
    model = recorder.to(kind)
    outcome = make(key)(model, x.to(kind), y, generator=generator())
    outcome.loss.backward()
    assert outcome.loss.dtype == kind and torch.isfinite(outcome.loss)
    assert all(batch.dtype == kind for batch in recorder.seen)
    assert make(key).predict(model, x.to(kind), generator()).dtype == kind


@pytest.mark.parametrize("key", EVERY)
def test_the_default_type_does_not_change_what_is_drawn(key, recorder, x, y):
    expected = make(key)(recorder, x, y, generator=generator()).loss
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.equal(make(key)(recorder, x, y, generator=generator()).loss, expected)
    finally:
        torch.set_default_dtype(torch.float32)


def test_logits_of_float64_are_judged_in_float64(recorder, x, y):
    """A cross-entropy of 1e-12, which float32 rounds to zero."""

    class Certain(nn.Module):
        def forward(self, x):
            return 27.631 * nn.functional.one_hot(y[: len(x)], 2).to(x)

    y = torch.zeros(6, dtype=torch.long)
    outcome = Standard()(Certain(), x.double(), y)
    assert outcome.loss.item() == pytest.approx(1e-12, rel=1e-3)
    assert cross_entropy_of(y)(Certain()(x.double())).tolist() == pytest.approx([1e-12] * 6, rel=1e-3)
    assert 1 - Standard().predict(Certain(), x.double())[0, 0].item() == pytest.approx(1e-12, rel=1e-3)


def test_a_setting_out_of_range_is_refused():
    for wrong in (
        lambda: AugMix(width=0), lambda: AugMix(severity=11), lambda: AugMix(operations=()), lambda: AugMax(steps=0),
        lambda: DeepAugment(share=1.5), lambda: DeepAugment(weakest=0.5, strongest=0.4), lambda: TRADES(weight=-1),
        lambda: DiGN(samples=0), lambda: RSE(sigma=-0.1),
    ):  # fmt: skip
        with pytest.raises(ValueError):
            wrong()


def test_the_hybrid_is_dign_plus_augmix_s_divergence_with_one_clean_pass(recorder, x, y):
    dign, augmix = DiGN(weight=0.7, samples=2), AugMix(weight=5.0)
    outcome = (dign + augmix)(recorder, x, y, generator=generator())
    clean, *views = recorder.seen[0].split(6)
    assert len(recorder.seen) == 1 and len(views) == 2 + 2 and torch.equal(clean, x)
    assert not any(torch.equal(view, x) for view in views)
    logits = [recorder.body(batch) for batch in (clean, *views)]
    first = dign.terms(logits[0], logits[1:3], y)
    second = augmix.terms(logits[0], logits[3:], y)
    expected = first["cross_entropy"] + first["consistency"] + second["augmix_consistency"]
    assert outcome.loss.item() == pytest.approx(expected.item(), rel=1e-5)
    assert sum(outcome.terms.values()).item() == pytest.approx(outcome.loss.item(), rel=1e-5)


def test_an_augmentation_changes_the_batch_for_the_other_method_and_adds_no_pass(recorder, x, y):
    """CutMix + DiGN: the mixed batch is DiGN's clean batch, its noise is added to it, its labels are the mixed ones."""
    cutmix, dign = CutMix(probability=1.0), DiGN(weight=0.7, samples=2)
    outcome = (cutmix + dign)(recorder, x, y, generator=generator())
    mixed, labels = cutmix.augment(x, y, generator())
    (batch,) = recorder.seen
    clean, *noisy = batch.split(6)
    assert torch.equal(clean, mixed) and len(noisy) == 2
    assert all((copy - mixed).abs().mean() < 0.2 for copy in noisy)
    terms = dign.terms(recorder.body(clean), [recorder.body(copy) for copy in noisy], labels)
    assert outcome.loss.item() == pytest.approx(sum(terms.values()).item(), rel=1e-5)
    assert outcome.terms.keys() == {"cross_entropy", "consistency"}


def test_augmentations_come_in_the_order_in_which_they_are_written(recorder, x, y):
    for first, second in ((MixUp(), CutMix()), (CutMix(), MixUp())):
        draw = generator()
        once = first.augment(x, y, draw)
        mixed, labels = second.augment(*once, draw)
        outcome = (first + second)(recorder, x, y, generator=generator())
        assert torch.equal(recorder.seen[-1], mixed) and labels.classes.shape == (6, 4)
        assert outcome.loss.item() == pytest.approx(Standard().cross_entropy(recorder.body(mixed), labels).item())


@pytest.mark.parametrize("other", [RSE(), AT(steps=1), Standard()], ids=lambda method: method.key)
def test_an_augmentation_costs_nothing_beside_a_method_that_never_sees_the_clean_batch(other, recorder, x, y):
    method = MixUp() + other
    assert method.cost == other.cost and method.sees_clean == other.sees_clean
    outcome = method(recorder, x, y, generator=generator())
    assert list(outcome.terms) == list(other(recorder, x, y).terms)
    assert [len(batch) for batch in recorder.trained_on] == [6, 6]


def test_a_sum_of_two_that_never_see_the_clean_batch_keeps_both_terms(recorder, x, y):
    outcome = (RSE() + DiGNWithoutCR() + AT())(recorder, x, y, generator=generator())
    assert len(outcome.terms) == 3
    assert len(recorder.trained_on[0]) == 3 * 6
    assert (RSE() + DiGNWithoutCR()).predict(recorder, x, generator()).shape == (6, 5)


@pytest.mark.slow
def test_every_pair_of_methods_adds_up(recorder, x, y):
    kinds = [kind for kind in METHODS.values() if kind is MixUp or not issubclass(kind, Augmentation)]
    for first in kinds:
        for second in kinds:
            if first is not second and not (first.mixes_inside and second.augment is not Method.augment):
                outcome = (first() + second())(recorder, x, y, generator=generator())
                assert sum(outcome.terms.values()).item() == pytest.approx(outcome.loss.item(), rel=1e-5)


def test_python_s_sum_adds_methods_up_and_nothing_else_is_added():
    assert sum([DiGN(), AugMix()]) == DiGN() + AugMix()
    with pytest.raises(UserError, match="methods are added to methods"):
        torch.ones(3) + DiGN()
    for other in (AugMix, "augmix", 1):
        with pytest.raises(UserError, match=r"as in DiGN\(\) \+ AugMix\(\)"):
            DiGN() + other
        with pytest.raises(UserError, match=r"as in DiGN\(\) \+ AugMix\(\)"):
            other + DiGN()


@pytest.mark.parametrize("method", [GradientRegularization(), CURE(), LLR()])
def test_a_method_that_needs_gradients_says_so_where_they_are_switched_off(method, recorder, x, y):
    with torch.no_grad(), pytest.raises(UserError, match=r"outside of torch.no_grad\(\)"):
        method(recorder, x, y)


def test_a_sum_takes_each_method_once_and_wants_them_to_agree():
    with pytest.raises(UserError, match="once"):
        DiGN() + DiGN()
    with pytest.raises(UserError, match="label_smoothing"):
        DiGN(label_smoothing=0.1) + AugMix()


def test_standard_plus_dign_is_dign(recorder, x, y):
    both = (Standard() + DiGN())(recorder, x, y, generator=generator())
    alone = DiGN()(recorder, x, y, generator=generator())
    torch.testing.assert_close(both.loss, alone.loss)


@pytest.fixture(scope="module")
def digits():
    return load("digits", size=8)


@pytest.mark.slow
@pytest.mark.parametrize("key", [*METHODS, "dign+augmix"])
def test_it_learns(key, digits):
    method = make(key, **MILD.get(key, {}))
    images, labels = digits.train.images.float() / 255, digits.train.labels
    mean, std = channel_statistics(digits.train.images)
    model = build("tinynet", classes=10, image_size=digits.image_size, mean=mean, std=std)
    if key in MILD:  # at 8x8, batch norm makes gradients with respect to the images very large
        layers = [nn.Conv2d(3, 16, 3), nn.GELU(), nn.Conv2d(16, 32, 3), nn.GELU(), nn.Flatten(), nn.Linear(512, 10)]
        model = nn.Sequential(*layers)
    epochs, batch = 3, 64
    steps = epochs * (len(images) // batch)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=steps)
    for step in range(steps):
        order = make_generator(0, "order", step)
        chosen = torch.randint(len(images), (batch,), generator=order)
        outcome = method(model, images[chosen], labels[chosen], generator=make_generator(0, "method", step))
        optimizer.zero_grad()
        outcome.loss.backward()
        optimizer.step()
        schedule.step()
    model.eval()
    with torch.no_grad():
        predicted = method.predict(model, digits.test.images.float() / 255, make_generator(0, "predict"))
    accuracy = 100 * (predicted.argmax(1) == digits.test.labels).float().mean().item()
    print(f"{key}: {accuracy:.1f} %")
    assert accuracy > LEAST.get(key, 92)
