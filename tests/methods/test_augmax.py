import pytest
import torch

from dign.methods import AugMax


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_augmax(oracle, recorder, x, y):
    outcome, (p, first, second), (clean, _, _) = oracle.run(AugMax(), recorder, x, y)
    assert torch.equal(clean, x)
    assert outcome.loss.item() == pytest.approx(
        oracle.cross_entropy(p, y) + 12 * oracle.jensen_shannon(p, first, second), rel=1e-4
    )


def test_augmax_climbs_on_the_mixing_weights_alone(oracle, recorder, x, y):
    """Every attacked batch is a mixture of the same chains; the last one is harder than the first."""
    method = AugMax(steps=20, severity=8.0)
    outcome = method(recorder, x, y, generator=generator())
    chains = method.chains(x, 2, generator())[1].double() / 255
    attacked = [batch for batch, training in zip(recorder.seen, recorder.modes, strict=True) if not training]
    assert len(attacked) == 20
    worst = recorder.trained_on[0].split(6)[2]
    for batch in (attacked[0], attacked[-1], worst):
        for i in range(6):
            basis = torch.cat((x[i][None].double(), chains[i])).flatten(1).T
            weights = torch.linalg.lstsq(basis, batch[i].double().flatten()[:, None], driver="gelsd").solution[:, 0]
            torch.testing.assert_close(basis @ weights, batch[i].double().flatten(), atol=1e-5, rtol=0)
            assert weights.sum().item() == pytest.approx(1, abs=1e-3)
    losses = [oracle.cross_entropy(oracle.probabilities(recorder, batch), y) for batch in (attacked[0], worst)]
    assert losses[1] > losses[0]
    assert torch.isfinite(outcome.loss)
