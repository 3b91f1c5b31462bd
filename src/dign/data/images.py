"""Where the images of a split are: in memory, mapped from a file, or read from one as they are asked for."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from torch import Tensor


class Images(Protocol):
    """uint8 images (N,3,H,W), of which some are taken at a time: a tensor, or anything that reads or decodes them."""

    @property
    def shape(self) -> torch.Size: ...

    @property
    def dtype(self) -> torch.dtype: ...

    def __len__(self) -> int: ...

    def __getitem__(self, which: slice | Tensor, /) -> Tensor:
        """The images of a slice, or at these indices (n,), in this order. It may be called from another thread."""
        ...


class ImageFile:
    """The images of a .npy file that is larger than the address space: each is read when it is asked for.

    Args:
        path: A file of uint8 images (N,3,H,W) in C order.

    Raises:
        OSError: It cannot be read.
        ValueError: It is not such a file, or truncated.
    """

    dtype = torch.uint8

    def __init__(self, path: Path | str) -> None:
        with open(path, "rb") as file:
            try:
                version = np.lib.format.read_magic(file)
                read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
                shape, fortran, dtype = read(file)
            except Exception as error:  # NumPy's header parser raises anything
                raise ValueError("it is truncated or not a .npy file") from error
            self._start = file.tell()
            size = os.fstat(file.fileno()).st_size
        if fortran or dtype != np.uint8 or len(shape) != 4:
            raise ValueError("it does not hold uint8 images (N,3,H,W)")
        self.shape = torch.Size(shape)
        self._bytes = self.shape[1:].numel()
        if size < self._start + len(self) * self._bytes:
            raise ValueError("it is truncated")
        self._file = open(path, "rb", buffering=0)  # noqa: SIM115 (open as long as the images are in use)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, which: slice | Tensor) -> Tensor:
        rows = range(len(self))[which] if isinstance(which, slice) else which.tolist()
        images = torch.empty(len(rows), *self.shape[1:], dtype=torch.uint8)
        views = images.numpy()
        for place, row in enumerate(rows):
            done = os.preadv(self._file.fileno(), [views[place].data], self._start + row * self._bytes)
            if done != self._bytes:
                raise OSError(f"image {row} of {self._file.name} cannot be read")
        return images
