import json

import pytest
import torch
from torch import nn

from dign import Attack, robust_accuracy
from dign.core.errors import UserError
from dign.evaluation.attack import AttackResult, attack_subject, read_attacks, save_attack, write_eps
from dign.evaluation.subjects import open_run
from dign.methods import RSE, Standard
from dign.runs.classifier import Classifier


@pytest.fixture
def line():
    """Class 1 where the first pixel is above one half: the distance to the border is known."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(12, 2))
    with torch.no_grad():
        model[1].weight.zero_()
        model[1].weight[1, 0] = 10.0
        model[1].bias.copy_(torch.tensor([5.0, 0.0]))
    return model


@pytest.fixture
def images():
    x = torch.full((5, 3, 2, 2), 0.5)
    x[:, 0, 0, 0] = torch.tensor([0.1, 0.38, 0.45, 0.55, 0.8])
    return x, torch.tensor([0, 0, 0, 1, 1])


@pytest.mark.parametrize("kind", ["pgd", "apgd"])
@pytest.mark.parametrize("norm", ["linf", "l2"])
@pytest.mark.parametrize(("eps", "left"), [(0.04, 100), (0.11, 60), (0.2, 40), (0.35, 20)])
def test_exactly_those_images_fall_that_are_near_the_border(line, images, kind, norm, eps, left):
    result = robust_accuracy(line, images, Attack(kind=kind, norm=norm, eps=eps))
    assert (result.accuracy, result.robust_accuracy, result.images) == (100, left, 5)


def test_what_was_wrong_before_counts_as_wrong_and_is_left_as_it_is(line, images):
    x, y = images
    wrong = y.clone()
    wrong[0] = 1
    assert torch.equal(Attack(eps=0.1).perturb(line, x, wrong)[0], x[0])
    assert robust_accuracy(line, (x, wrong), Attack(eps=0.04)).accuracy == 80


def test_starts_do_not_depend_on_the_batch(line, images):
    x, y = images
    together = Attack(kind="pgd", eps=0.3, steps=1).perturb(line, x, y)
    alone = torch.cat(
        [Attack(kind="pgd", eps=0.3, steps=1).perturb(line, x[i : i + 1], y[i : i + 1], first=i) for i in range(5)]
    )
    torch.testing.assert_close(together, alone)


def test_a_method_that_averages_over_noise_is_attacked_through_it(line, images):
    classifier = Classifier(line, RSE(sigma=0.02, ensemble=4), ["a", "b"], (2, 2))
    assert robust_accuracy(classifier, images, Attack(eps=0.2)).robust_accuracy == 40
    plain = Classifier(line, Standard(), ["a", "b"], (2, 2))
    assert robust_accuracy(plain, images, Attack(eps=0.2)).robust_accuracy == 40


@pytest.mark.parametrize(("norm", "eps"), [("linf", 0.05), ("l2", 0.4)])
def test_apgd_is_at_least_as_strong_as_pgd_on_a_trained_model(norm, eps):
    torch.manual_seed(0)
    y = torch.arange(200) % 4
    x = ((torch.rand(4, 3, 6, 6) * 0.3 + 0.35)[y] + 0.15 * torch.randn(200, 3, 6, 6)).clamp(0, 1)
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(128, 32), nn.Tanh(), nn.Linear(32, 4))
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    for _ in range(60):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    weak, strong = (robust_accuracy(model, (x, y), Attack(kind=kind, norm=norm, eps=eps)) for kind in ("pgd", "apgd"))
    assert weak.accuracy > 95 and 0 < strong.robust_accuracy <= weak.robust_accuracy < 80
    attacked = Attack(norm=norm, eps=eps).perturb(model, x, y)
    size = (attacked - x).flatten(1).norm(p=float("inf") if norm == "linf" else 2, dim=1)
    assert size.max() <= eps + 1e-6 and attacked.min() >= 0 and attacked.max() <= 1


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"kind": "fgsm"}, "Unknown attack 'fgsm'"),
        ({"norm": "l1"}, "Unknown norm 'l1'"),
        ({"eps": 0}, "`eps` must be above 0"),
        ({"eps": 8}, "8/255 is usual"),
        ({"steps": 0}, "steps"),
    ],
)
def test_bad_settings_get_a_sentence(settings, sentence):
    with pytest.raises(UserError, match=sentence):
        Attack(**settings)


def test_a_function_has_no_gradient(images):
    with pytest.raises(UserError, match="an attack needs gradients"):
        robust_accuracy(lambda x: x, images)

    class Detached(nn.Module):
        def forward(self, x):
            return x.detach().flatten(1)[:, :2]

    with pytest.raises(UserError, match="this model gives none"):
        robust_accuracy(Detached(), images)


def test_radii_are_written_as_people_do():
    assert [write_eps(eps) for eps in (8 / 255, 1 / 255, 0.5, 0.25)] == ["8/255", "1/255", "0.5", "0.25"]


def test_results_of_other_attacks_are_kept_and_the_same_one_replaced(tmp_path):
    first = AttackResult(Attack(), 10, 90.0, 40.0, "test")
    other = AttackResult(Attack(norm="l2", eps=0.5), 10, 90.0, 50.0, "test")
    for result in (first, other, AttackResult(Attack(), 10, 90.0, 41.0, "test")):
        save_attack(tmp_path, result)
    found = {entry["attack"]["norm"]: entry["robust_accuracy"] for entry in read_attacks(tmp_path)}
    assert found == {"l2": 50.0, "linf": 41.0}
    (tmp_path / "attacks.json").write_text("[1]")
    assert read_attacks(tmp_path) == []


def test_a_run_is_attacked_on_its_test_images(run):
    folder = run.path
    subject, found = open_run(run)
    weak = attack_subject(subject, found.data, Attack(kind="pgd", eps=1 / 255, steps=2), images=40)
    strong = attack_subject(subject, found.data, Attack(kind="apgd", eps=40 / 255, steps=5), images=40)
    for result in (weak, strong):
        save_attack(folder, result)
    assert weak.images == 40 and weak.split == "test"
    assert strong.robust_accuracy <= weak.robust_accuracy <= weak.accuracy == strong.accuracy
    entries = json.loads((folder / "attacks.json").read_text())["attacks"]
    assert [entry["attack"]["kind"] for entry in entries] == ["pgd", "apgd"]
    assert {"commit", "time", "versions", "device"} <= entries[0]["about"].keys()
