"""Images that are decoded when they are asked for are those that the cache would hold."""

import pytest
import torch

from dign.core.errors import UserError
from dign.data.decoded_images import DecodedImages
from dign.data.decoding import decode
from dign.data.framing import Framing
from dign.data.pictures import Pictures


def test_indexing_decodes(tmp_path, save_image):
    paths = [save_image(tmp_path / f"{n}.png", (n, 2 * n, 3 * n), (20, 10 + n)) for n in range(5)]
    framing = Framing("pad")
    images = DecodedImages(Pictures.from_paths(paths), (8, 8), framing)
    assert images.shape == (5, 3, 8, 8) and len(images) == 5 and images.dtype == torch.uint8
    expected = torch.stack([torch.from_numpy(decode(path, (8, 8), framing)) for path in paths])
    assert torch.equal(images[:], expected) and torch.equal(images[1:3], expected[1:3])
    assert torch.equal(images[torch.tensor([4, 0])], expected[[4, 0]])


def test_a_picture_that_cannot_be_read_is_named(tmp_path, save_image):
    good, bad = save_image(tmp_path / "good.png"), tmp_path / "bad.png"
    bad.write_bytes(b"nothing")
    images = DecodedImages(Pictures.from_paths([good, bad]), (8, 8), Framing())
    assert images[:1].shape == (1, 3, 8, 8)
    with pytest.raises(UserError, match=r"bad\.png cannot be read \(it is not an image"):
        images[:]
