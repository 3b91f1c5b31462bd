"""`torch.export` and TorchScript files can run code: the evidence, and that nothing of it runs untrusted."""

import os
import pickle
import warnings
import zipfile

import pytest
import torch
from torch import nn

from dign.core.errors import UserError
from dign.runs.foreign import open_model

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(48, 5)).eval()


@pytest.fixture
def exported(tmp_path, network):
    program = torch.export.export(
        network, (torch.rand(2, 3, 4, 4),), dynamic_shapes=({0: torch.export.Dim("n", min=1)},)
    )
    torch.export.save(program, tmp_path / "net.pt2")
    return tmp_path / "net.pt2"


class Evil:
    def __reduce__(self):
        return os.mkdir, ("was-run",)


def poison(path, out):
    """The same archive, with its example inputs replaced by a pickle that makes a folder."""
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(out, "w") as target:
        names = source.namelist()
        assert any("sample_inputs" in name for name in names)
        for name in names:
            content = source.read(name)
            if "sample_inputs" in name:
                torch.save(Evil(), out.with_suffix(".part"), pickle_module=pickle)
                content = out.with_suffix(".part").read_bytes()
            target.writestr(name, content)
    return out


def test_a_trusted_program_gives_the_logits_of_its_network(exported, network):
    images = torch.rand(3, 3, 4, 4)
    model = open_model(exported, trust=True)
    assert torch.allclose(model(images), network(images), atol=1e-6) and model.name == "net"
    assert model.train().eval() is model


def test_a_program_of_a_stranger_is_not_opened(exported, tmp_path, monkeypatch):
    """What torch itself does with such a file is the reason."""
    monkeypatch.chdir(tmp_path)
    evil = poison(exported, tmp_path / "evil.pt2")
    with pytest.raises(UserError, match=r"can run code when it is opened .*: export the model as ONNX, or, .* `trust`"):
        open_model(evil)
    assert not (tmp_path / "was-run").exists()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            torch.export.load(evil)
        except Exception as error:
            assert (tmp_path / "was-run").exists(), error
    assert (tmp_path / "was-run").exists(), "torch runs it: if this fails, .pt2 files may have become safe"


def test_torchscript_is_opened_only_if_trusted(tmp_path, network):
    torch.jit.trace(network, torch.rand(1, 3, 4, 4)).save(tmp_path / "net.pt")
    with pytest.raises(UserError, match="is a TorchScript archive, a program that can read and write files"):
        open_model(tmp_path / "net.pt")
    images = torch.rand(3, 3, 4, 4)
    assert torch.allclose(open_model(tmp_path / "net.pt", trust=True)(images), network(images), atol=1e-6)


@pytest.mark.parametrize("trust", [False, True])
def test_weights_alone_are_not_a_model(tmp_path, network, trust):
    torch.save(network.state_dict(), tmp_path / "net.pth")
    with pytest.raises(UserError, match="has weights without an architecture: name that as well, as in timm:NAME"):
        open_model(tmp_path / "net.pth", trust=trust)


def test_damaged_programs_are_one_sentence(tmp_path):
    (tmp_path / "net.pt2").write_bytes(b"no program")
    with pytest.raises(UserError, match=r"is not a torch.export file that can be loaded"):
        open_model(tmp_path / "net.pt2", trust=True)
