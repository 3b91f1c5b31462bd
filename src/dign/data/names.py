"""The names of the data sources. Imports nothing, so that help and completion answer at once."""

FOLDER_PREFIX = "folder:"
SHARDS_PREFIX = "wds:"
HUGGING_FACE_PREFIX = "hf:"
PICTURE_PREFIXES = (FOLDER_PREFIX, SHARDS_PREFIX, HUGGING_FACE_PREFIX)
"""The user's own pictures, at the place that follows."""

NAMES: dict[str, str] = {
    "digits": "1 797 handwritten digits, 10 classes, 8x8 gray pixels enlarged to 16x16; needs no download",
    "cifar10": "CIFAR-10: 60 000 photographs of 10 kinds of things, 32x32",
    "cifar100": "CIFAR-100: 60 000 photographs of 100 kinds of things, 32x32",
    "tiny-imagenet": "Tiny-ImageNet: 110 000 photographs of 200 kinds of things, 64x64",
}
"""Name to one-line description; `folder:PATH` stands beside them."""


def hide_folder_path(data: str) -> str:
    """Return a data set's name for results: of own pictures only their folder's name, without the path to it."""
    prefix, place = split_prefix(data)
    if not prefix:
        return data
    parts = [part for part in place.replace("\\", "/").split("/") if part not in ("", ".")]
    return prefix + (parts[-1] if parts else "")


def split_prefix(data: str) -> tuple[str, str]:
    """The prefix and the place of own pictures; an empty prefix, and the name, for any other data set.

    >>> split_prefix("folder:photos"), split_prefix("cifar10")
    (('folder:', 'photos'), ('', 'cifar10'))
    """
    prefix = next((each for each in PICTURE_PREFIXES if data.startswith(each)), "")
    return prefix, data.removeprefix(prefix)


FOLDER_DESCRIPTION = "your own images: PATH/train and PATH/test with one folder per class, or one folder to be split"

SHARDS_DESCRIPTION = "WebDataset shards of your own: uncompressed tar files, as in wds:photos-{000..099}.tar"
HUGGING_FACE_DESCRIPTION = "a Hugging Face data set on disk (Arrow or Parquet files); needs dign[hf]"
PICTURES = {
    f"{FOLDER_PREFIX}PATH": FOLDER_DESCRIPTION,
    f"{SHARDS_PREFIX}PATTERN": SHARDS_DESCRIPTION,
    f"{HUGGING_FACE_PREFIX}PATH": HUGGING_FACE_DESCRIPTION,
}
"""What stands beside `NAMES`."""
