"""The names of the data sources. Imports nothing, so that help and completion answer at once."""

FOLDER_PREFIX = "folder:"

NAMES: dict[str, str] = {
    "digits": "1 797 handwritten digits, 10 classes, 8x8 grey pixels enlarged to 16x16; needs no download",
    "cifar10": "CIFAR-10: 60 000 photographs of 10 kinds of things, 32x32",
    "cifar100": "CIFAR-100: 60 000 photographs of 100 kinds of things, 32x32",
    "tiny-imagenet": "Tiny-ImageNet: 110 000 photographs of 200 kinds of things, 64x64",
}
"""Name to one-line description; `folder:PATH` stands beside them."""

FOLDER_DESCRIPTION = "your own images: PATH/train and PATH/test with one folder per class, or one folder to be split"
