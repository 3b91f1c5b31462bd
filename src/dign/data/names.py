"""The names of the data sources. Imports nothing, so that help and completion answer at once."""

FOLDER_PREFIX = "folder:"

NAMES: dict[str, str] = {
    "digits": "1 797 handwritten digits, 10 classes, 8x8 gray pixels enlarged to 16x16; needs no download",
    "cifar10": "CIFAR-10: 60 000 photographs of 10 kinds of things, 32x32",
    "cifar100": "CIFAR-100: 60 000 photographs of 100 kinds of things, 32x32",
    "tiny-imagenet": "Tiny-ImageNet: 110 000 photographs of 200 kinds of things, 64x64",
}
"""Name to one-line description; `folder:PATH` stands beside them."""


def hide_folder_path(data: str) -> str:
    """Return a data set's name for results: of a folder only its own name, without the path to it."""
    if not data.startswith(FOLDER_PREFIX):
        return data
    parts = [part for part in data.removeprefix(FOLDER_PREFIX).replace("\\", "/").split("/") if part not in ("", ".")]
    return FOLDER_PREFIX + (parts[-1] if parts else "")


FOLDER_DESCRIPTION = "your own images: PATH/train and PATH/test with one folder per class, or one folder to be split"
