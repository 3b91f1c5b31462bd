import warnings
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from dign.core.errors import UserError
from dign.methods import AT, METHODS, TRADES, AugMax, AugMix, CutMix, DiGN, Standard, batch_checks
from dign.methods.batch_checks import LOOK_EVERY, class_rows


@pytest.fixture(autouse=True)
def fresh_looks(monkeypatch):
    monkeypatch.setattr(batch_checks, "_looks", SimpleNamespace(**dict.fromkeys(vars(batch_checks._looks), 0)))


@pytest.fixture
def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(192, 5))


@pytest.mark.parametrize("key", METHODS)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x, y: ((255 * x).to(torch.uint8), y), "images are torch.uint8: expected float"),
        (lambda x, y: (x.numpy(), y), "images are a ndarray: expected a float tensor"),
        (lambda x, y: (x, y.numpy()), "labels are a ndarray: expected a tensor of class indices"),
        (
            lambda x, y: (x, y + 3),
            r"labels go from \d to \d, but the model returns fewer logits",
        ),
        (lambda x, y: (x[0], y), r"images have shape \(3, 8, 8\): expected \(N,C,H,W\)"),
        (lambda x, y: (x[:0], y[:0]), "the batch is empty"),
        (lambda x, y: (x, y.float()), "labels are torch.float32: expected integer class indices"),
        (lambda x, y: (x, y > 2), "labels are torch.bool"),
        (lambda x, y: (x, nn.functional.one_hot(y)), r"labels have shape \(6, 5\).*y.argmax\(1\)"),
        (lambda x, y: (x, nn.functional.one_hot(y).float()), "multi-label targets are not supported"),
        (lambda x, y: (x, y[:4]), "6 images have 4 labels"),
        (lambda x, y: (x, y.to("meta")), "images are on cpu and labels on meta"),
    ],
)
def test_what_cannot_be_a_batch_is_refused_in_one_sentence(key, change, message, model, x, y):
    with pytest.raises(UserError, match=message):
        METHODS[key]()(model, *change(x, y))


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("key", METHODS)
@pytest.mark.parametrize(
    ("head", "message"),
    [
        (nn.Linear(192, 1), "one logit per image: expected one for each class, two for a binary classifier"),
        (nn.Unflatten(1, (3, 8, 8)), r"logits of shape \(\d+, 3, 8, 8\) for labels of shape \(6,\)"),
        (nn.Unflatten(1, (3, 64)), r"logits of shape \(\d+, 3, 64\): expected float logits \(N,C\)"),
    ],
)
def test_logits_that_do_not_fit_are_refused(key, together, head, message, x, y):
    with pytest.raises(UserError, match=message):
        METHODS[key](together=together)(nn.Sequential(nn.Flatten(), head), x, y)


def test_a_model_that_loses_images_is_refused(x, y):
    class Half(nn.Module):
        def forward(self, x):
            return x.flatten(1)[: len(x) // 2]

    for together in (True, False):
        with pytest.raises(UserError, match="the model returned logits of shape"):
            DiGN(together=together)(Half(), x, y)


@pytest.mark.parametrize("key", ["at", "trades", "augmax", "dign", "standard"])
def test_labels_of_any_integer_type_are_class_indices(key, model, x, y):
    losses = [
        METHODS[key]()(model, x, y.to(dtype), generator=torch.Generator().manual_seed(0)).loss.item()
        for dtype in (torch.int64, torch.int32, torch.uint8)
    ]
    assert losses[0] == losses[1] == losses[2]


def test_predictions_with_one_logit_are_refused(x):
    with pytest.raises(UserError, match="one logit per image"):
        Standard().predict(nn.Sequential(nn.Flatten(), nn.Linear(192, 1)), x)


@pytest.mark.parametrize("key", METHODS)
def test_predictions_for_uint8_images_are_refused(key, model, x):
    with pytest.raises(UserError, match=r"images are torch\.uint8: expected float"):
        METHODS[key]().predict(model, (255 * x).to(torch.uint8))


def test_class_rows_are_the_pixels_in_the_order_of_the_flattened_labels():
    logits, y = torch.randn(2, 3, 4, 5), torch.zeros(2, 4, 5, dtype=torch.long)
    rows = class_rows(logits, y)
    assert torch.equal(rows.view(2, 4, 5, 3)[1, 2, 3], logits[1, :, 2, 3])
    flat = torch.randn(2, 3)
    assert class_rows(flat, torch.zeros(2)) is flat


class Pixelwise(nn.Module):
    """Logits (N,5,H,W)."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.body = nn.Conv2d(3, 5, 3, padding=1)

    def forward(self, x):
        return self.body(x)


@pytest.mark.parametrize(
    "method", [Standard(), DiGN(weight=0.7), AT(), TRADES(), METHODS["rse"]()], ids=lambda m: m.key
)
def test_segmentation_is_classification_of_every_pixel(method, x):
    """The same as for a model whose examples are pixels, written out."""
    y = torch.randint(5, (6, 8, 8), generator=torch.Generator().manual_seed(3))
    outcome = method(Pixelwise(), x, y, generator=torch.Generator().manual_seed(0))
    outcome.loss.backward()
    assert outcome.logits.shape == (6, 5, 8, 8)
    model = Pixelwise()
    views = method.views(model, x, y, torch.Generator().manual_seed(0))
    clean, *others = ([model(batch)[i, :, r, c] for i in range(6) for r in range(8) for c in range(8)]
                      for batch in (x, *views))  # fmt: skip
    clean = torch.stack(clean) if method.sees_clean else None
    terms = method.terms(clean, [torch.stack(rows) for rows in others], y.flatten())
    assert outcome.loss.item() == pytest.approx(sum(terms.values()).item(), rel=1e-4)
    assert method.predict(model, x).sum(1).allclose(torch.ones(6, 8, 8))


@pytest.mark.parametrize("method", [AugMix(), AugMax(), DiGN() + AugMix(), CutMix()], ids=lambda m: m.key)
def test_methods_that_move_pixels_refuse_segmentation(method, x):
    with pytest.raises(UserError, match="moves or mixes pixels"):
        method(Pixelwise(), x, torch.zeros(6, 8, 8, dtype=torch.long))


@pytest.mark.parametrize("change", [lambda x: 255 * x, lambda x: (x - 0.5) / 0.25], ids=["0 to 255", "normalized"])
def test_images_outside_the_unit_range_are_warned_of_once(change, model, x, y):
    with pytest.warns(UserWarning, match=r"\[0,1\], the unit of sigma.*dign\.Normalized\(model, mean, std\)") as caught:
        for _ in range(3):
            DiGN()(model, change(x), y)
    assert len(caught) == 1
    assert caught[0].filename == __file__, "the warning points at the caller"


def test_the_range_is_looked_at_on_the_first_call_and_then_now_and_then(model, x, y, monkeypatch):
    looked = []
    monkeypatch.setattr(torch, "aminmax", lambda x: looked.append(batch_checks._looks.calls) or (x.min(), x.max()))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            Standard()(model, x, y)
        assert looked == [1]
        batch_checks._looks.calls = LOOK_EVERY - 1
        for _ in range(3):
            Standard()(model, x, y)
    assert looked == [1, LOOK_EVERY + 1]
    batch_checks._looks.calls = 2 * LOOK_EVERY
    with pytest.warns(UserWarning, match="images range from"):
        Standard()(model, 255 * x, y)


def test_images_that_overshoot_a_little_are_no_reason_to_warn(model, x, y):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Standard()(model, 1.1 * x - 0.05, y)


def test_a_model_that_ends_in_softmax_is_warned_of_once(model, x, y):
    with pytest.warns(UserWarning, match="the model returns probabilities, but methods take logits") as caught:
        for _ in range(3):
            batch_checks._looks.calls = 0
            DiGN()(nn.Sequential(model, nn.Softmax(1)), x, y)
    assert len(caught) == 1
    assert caught[0].filename == __file__, "the warning points at the caller"
