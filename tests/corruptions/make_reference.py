"""Cut the reference outputs of the published generator down to what the repository carries.

    python tests/corruptions/make_reference.py cifar_c_reference.npz cifar_c_bar_reference.npz

Each input holds sixteen CIFAR-10 test images (5000..5015) as `clean` (16,32,32,3) and, per corruption, what the
original generator made of them, (5,16,32,32,3) uint8. Kept are the first 8 images of the corruptions without chance and
the first 12 of the others, as differences from the clean images modulo 256, which compress better; of C-bar, 10.
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
HERE = Path(__file__).parent


def main(source: str, c_bar_source: str) -> None:
    full = np.load(source)
    kept = {"clean": full["clean"][:12]}
    for name in full.files:
        if name != "clean":
            count = 8 if name in CERTAIN else 12
            kept[name] = full[name][:, :count] - full["clean"][:count]
    np.savez_compressed(HERE / "reference.npz", **kept)
    c_bar = np.load(c_bar_source)
    assert np.array_equal(c_bar["clean"], full["clean"])
    differences = {name: c_bar[name][:, :10] - full["clean"][:10] for name in c_bar.files if name != "clean"}
    np.savez_compressed(HERE / "c_bar" / "reference.npz", **differences)


if __name__ == "__main__":
    main(*sys.argv[1:])
