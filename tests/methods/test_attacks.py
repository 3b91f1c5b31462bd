import pytest
import torch
from torch import nn
from torch.nn import functional

from dign.core.errors import UserError
from dign.methods import AT
from dign.methods.attacks import cross_entropy_of, pgd


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.fixture
def model():
    torch.manual_seed(0)
    body = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 5))
    body(torch.rand(64, 3, 8, 8))  # batch-norm statistics that are not those of birth
    return body


@pytest.fixture
def x():
    return torch.rand(6, 3, 8, 8, generator=generator(1))


@pytest.fixture
def y():
    return torch.tensor([0, 1, 2, 3, 4, 0])


def size(delta, norm):
    return delta.flatten(1).abs().amax(1) if norm == "linf" else delta.flatten(1).norm(dim=1)


@pytest.mark.parametrize("norm", ["linf", "l2"])
@pytest.mark.parametrize("start", ["zero", "uniform", "gaussian"])
@pytest.mark.parametrize("clip", [True, False])
def test_it_stays_in_the_ball_and_raises_the_loss_of_every_image(model, x, y, norm, start, clip):
    radius = 0.05 if norm == "linf" else 0.5
    attacked = pgd(
        model, x, cross_entropy_of(y), norm=norm, radius=radius, start=start, clip=clip, generator=generator()
    )
    assert (size(attacked - x, norm) <= radius * (1 + 1e-5) + 1e-7).all()
    assert not clip or (attacked.min() >= 0 and attacked.max() <= 1)
    model.eval()
    before, after = (functional.cross_entropy(model(batch), y, reduction="none") for batch in (x, attacked))
    assert (after > before).all()


@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_it_is_the_textbook_algorithm_image_by_image(model, x, y, norm):
    radius, steps, step_size = (0.03, 3, 0.02) if norm == "linf" else (0.4, 3, 0.25)
    ours = pgd(model, x, cross_entropy_of(y), norm=norm, radius=radius, steps=steps, step_size=step_size, clip=False)
    model.eval()
    for image, label, attacked in zip(x, y, ours, strict=True):
        delta = torch.zeros_like(image)
        for _ in range(steps):
            delta.requires_grad_()
            loss = -model((image + delta)[None]).log_softmax(1)[0, label]
            (gradient,) = torch.autograd.grad(loss, delta)
            if norm == "linf":
                delta = (delta.detach() + step_size * gradient.sign()).clamp(-radius, radius)
            else:
                delta = delta.detach() + step_size * gradient / gradient.norm()
                delta = delta * min(1, radius / delta.norm().item())
        torch.testing.assert_close(attacked, image + delta, atol=1e-5, rtol=1e-4)


def test_the_step_size_is_two_and_a_half_radii_over_the_steps(model, x, y):
    default = pgd(model, x, cross_entropy_of(y), radius=0.04, steps=5)
    assert torch.equal(default, pgd(model, x, cross_entropy_of(y), radius=0.04, steps=5, step_size=0.02))


def test_the_model_is_left_exactly_as_it_was_found(model, x, y):
    model.train()
    model[1].eval()  # a part kept frozen
    model[0].bias.requires_grad_(False)
    model[4].weight.grad = torch.ones_like(model[4].weight)
    modes = [module.training for module in model.modules()]
    trainable = [parameter.requires_grad for parameter in model.parameters()]
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    before = x.clone()
    pgd(model, x, cross_entropy_of(y))
    assert [module.training for module in model.modules()] == modes
    assert [parameter.requires_grad for parameter in model.parameters()] == trainable
    assert all(torch.equal(state[name], tensor) for name, tensor in model.state_dict().items())
    assert torch.equal(model[4].weight.grad, torch.ones_like(model[4].weight))
    assert all(parameter.grad is None for name, parameter in model.named_parameters() if name != "4.weight")
    assert torch.equal(x, before)


def test_batch_norm_in_train_mode_keeps_its_statistics(model, x, y):
    model.train()
    before = model[1].running_mean.clone()
    pgd(model, x, cross_entropy_of(y))
    assert torch.equal(model[1].running_mean, before) and model[1].num_batches_tracked == 1


def test_no_gradient_is_computed_for_parameters(model, x, y):
    seen = []
    model[0].register_forward_hook(lambda module, inputs, output: seen.append(module.weight.requires_grad))
    pgd(model, x, cross_entropy_of(y), steps=4)
    assert seen == [False] * 4, "one forward pass per step, none of which could reach a parameter"


def test_it_works_where_gradients_are_switched_off_and_gives_a_detached_image(model, x, y):
    with torch.no_grad():
        attacked = pgd(model, x, cross_entropy_of(y))
    assert not attacked.requires_grad and not torch.equal(attacked, x)


def test_a_vanishing_gradient_gives_no_nan(x, y):
    flat = nn.Sequential(nn.Flatten(), nn.Linear(192, 5))
    nn.init.zeros_(flat[1].weight)
    for norm in ("linf", "l2"):
        assert torch.isfinite(pgd(flat, x, cross_entropy_of(y), norm=norm)).all()


def test_the_uniform_start_fills_the_ball():
    many = torch.full((400, 3, 2, 2), 0.5)
    flat = nn.Sequential(nn.Flatten(), nn.Linear(12, 5))
    settings = {"steps": 1, "step_size": 0.0, "start": "uniform", "radius": 0.1}
    labels = torch.zeros(400, dtype=torch.long)
    l2 = size(pgd(flat, many, cross_entropy_of(labels), norm="l2", generator=generator(), **settings) - many, "l2")
    assert ((l2 / 0.1) ** 12).mean().item() == pytest.approx(0.5, abs=0.05)  # uniform in volume
    linf = pgd(flat, many, cross_entropy_of(labels), generator=generator(), **settings) - many
    assert linf.std().item() == pytest.approx(0.1 / 3**0.5, rel=0.05)


def test_unknown_norms_and_starts_are_refused_by_name():
    with pytest.raises(UserError, match="l2, linf"):
        AT(norm="l1")
    with pytest.raises(UserError, match="gaussian, uniform, zero"):
        AT(start="ones")
    with pytest.raises(UserError, match="steps"):
        AT(steps=0)


@pytest.mark.parametrize("wrong", [{"norm": "l1"}, {"start": "corner"}, {"radius": -1.0}, {"steps": 0}])
def test_the_function_refuses_what_the_settings_refuse(model, x, y, wrong):
    with pytest.raises(UserError, match=next(iter(wrong))):
        pgd(model, x, cross_entropy_of(y), **wrong)


def test_a_model_without_gradients_cannot_be_attacked():
    class Detached(nn.Module):
        def forward(self, x):
            return x.detach().flatten(1)

    with pytest.raises(UserError, match=r"gives no gradients \(an ONNX file has none\)"):
        pgd(Detached(), torch.rand(2, 3, 2, 2), cross_entropy_of(torch.tensor([0, 1])))
