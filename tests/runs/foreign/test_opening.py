"""Every kind of model is opened in eval mode, and goes straight into `dign.evaluate`."""

import pytest
import torch
from torch import nn

import dign


@pytest.mark.filterwarnings("ignore")
def test_an_opened_model_is_evaluated_as_any_module(tmp_path):
    torch.manual_seed(0)
    network = nn.Sequential(nn.Flatten(), nn.Linear(192, 4))
    program = torch.export.export(
        network, (torch.rand(2, 3, 8, 8),), dynamic_shapes=({0: torch.export.Dim("n", min=1)},)
    )
    torch.export.save(program, tmp_path / "net.pt2")
    model = dign.open_model(tmp_path / "net.pt2", trust=True)
    assert not model.training
    data = (torch.rand(8, 3, 8, 8), torch.arange(8) % 4)
    conditions = dign.Conditions(corruptions=("fog",), severities=(3,))
    found, expected = dign.evaluate(model, data, conditions), dign.evaluate(network, data, conditions)
    assert found.clean.accuracy == expected.clean.accuracy
    assert found.corruptions["fog"].accuracy == expected.corruptions["fog"].accuracy
