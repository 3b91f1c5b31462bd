"""Cut the reference outputs of the published generator down to what the repository carries.

    python tests/corruptions/make_reference.py cifar_c_reference.npz

The input holds sixteen CIFAR-10 test images (5000..5015) as `clean` (16,32,32,3) and, per corruption, what the
original generator made of them, (5,16,32,32,3) uint8. Kept are the first 8 images of the corruptions without chance and
the first 12 of the others, as differences from the clean images modulo 256, which compress better.
"""

import sys
from pathlib import Path

import numpy as np

CERTAIN = (
    "gaussian_blur",
    "defocus_blur",
    "zoom_blur",
    "contrast",
    "brightness",
    "saturate",
    "jpeg_compression",
    "pixelate",
)
TARGET = Path(__file__).with_name("reference.npz")


def main(source: str) -> None:
    full = np.load(source)
    kept = {"clean": full["clean"][:12]}
    for name in full.files:
        if name != "clean":
            count = 8 if name in CERTAIN else 12
            kept[name] = full[name][:, :count] - full["clean"][:count]
    np.savez_compressed(TARGET, **kept)


if __name__ == "__main__":
    main(sys.argv[1])
