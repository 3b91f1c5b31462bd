"""How predictions are read: through a calibrator, as they are, at a temperature."""

import torch

from dign.data.dataset import Split
from dign.evaluation.conclusion import choose_readings, promises_of
from dign.methods import Standard
from dign.metrics import apply_temperature
from dign.runs.calibrate import fit_calibrator

PROBABILITIES = torch.tensor([[0.9, 0.1], [0.3, 0.7]])


def test_a_temperature_comes_last_and_the_own_calibrator_first():
    assert [torch.equal(read(PROBABILITIES), PROBABILITIES) for read in choose_readings(None, None)] == [True]
    plain, scaled = choose_readings(None, 2.0)
    assert torch.equal(plain(PROBABILITIES), PROBABILITIES)
    assert torch.equal(scaled(PROBABILITIES), apply_temperature(PROBABILITIES, 2.0))
    images = torch.randint(256, (40, 3, 4, 4), dtype=torch.uint8)
    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(48, 2))
    own = fit_calibrator(network, Standard(), Split(images, torch.arange(40) % 2))
    first, plain, _ = choose_readings(own, 2.0)
    assert torch.equal(first(PROBABILITIES), own.calibrate(PROBABILITIES))
    assert torch.equal(plain(PROBABILITIES), PROBABILITIES)
    assert promises_of(own) is not None and promises_of(None) is None
