"""Images that are read from a file as they are asked for."""

import numpy as np
import pytest
import torch

from dign.data.images import ImageFile


@pytest.fixture
def stored(tmp_path):
    images = np.random.default_rng(0).integers(0, 256, (7, 3, 4, 5), dtype=np.uint8)
    np.save(tmp_path / "images.npy", images)
    return tmp_path / "images.npy", torch.from_numpy(images)


def test_what_is_asked_for_is_what_a_tensor_gives(stored):
    path, images = stored
    file = ImageFile(path)
    assert (file.shape, file.dtype, len(file)) == (images.shape, torch.uint8, 7)
    for which in (slice(None), slice(2, 4), slice(5, 99), torch.tensor([6, 0, 0]), torch.tensor([], dtype=torch.int64)):
        assert torch.equal(file[which], images[which])


def test_a_file_that_is_cut_off_or_holds_something_else_is_refused(stored, tmp_path):
    path, _ = stored
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match="truncated"):
        ImageFile(path)
    np.save(tmp_path / "labels.npy", np.arange(3))
    with pytest.raises(ValueError, match="does not hold uint8 images"):
        ImageFile(tmp_path / "labels.npy")
    (tmp_path / "text.npy").write_text("text")
    with pytest.raises(ValueError, match=r"not a \.npy file"):
        ImageFile(tmp_path / "text.npy")
