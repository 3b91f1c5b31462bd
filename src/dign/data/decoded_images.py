"""Images that are decoded whenever they are asked for: for more pictures than the cache has room for."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from dign.core.errors import UserError
from dign.data.decoding import decode, map_in_parallel, replace_unprintable
from dign.data.framing import Framing
from dign.data.pictures import Pictures


class DecodedImages:
    """Pictures that look like a tensor of images (N,3,H,W), uint8; indexing it decodes, in parallel.

    Args:
        pictures: The encoded pictures.
        image_size: Height and width of the images.
        framing: How pictures are brought to that size.
    """

    dtype = torch.uint8

    def __init__(self, pictures: Pictures, image_size: tuple[int, int], framing: Framing) -> None:
        self.pictures, self.image_size, self.framing = pictures, image_size, framing

    @property
    def shape(self) -> torch.Size:
        return torch.Size((len(self.pictures), 3, *self.image_size))

    def __len__(self) -> int:
        return len(self.pictures)

    def __getitem__(self, which: slice | Tensor) -> Tensor:
        """The images of a slice, or at these indices (n,), in this order.

        Raises:
            UserError: One of them cannot be read.
        """
        numbers = range(len(self))[which] if isinstance(which, slice) else which.tolist()
        images = np.empty((len(numbers), *self.shape[1:]), np.uint8)
        for place, image in enumerate(map_in_parallel(self._decode, numbers)):
            images[place] = image
        return torch.from_numpy(images)

    def _decode(self, number: int) -> np.ndarray:
        try:
            return decode(self.pictures.read(number), self.image_size, self.framing)
        except UserError as error:
            name = replace_unprintable(self.pictures.name(number))
            raise UserError(
                f"The image {name} cannot be read ({error}): fix it or remove it, or set `skip_unreadable`."
            ) from error
