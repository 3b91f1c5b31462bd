"""Which of many images to take, and how many at once."""


def spread_indices(total: int, wanted: int) -> list[int]:
    """`wanted` of `total` images at equal distances, as published logs have them: every 20th of 10 000 for 500.

    They reach to the end: images may be sorted by class.

    >>> spread_indices(10, 3)
    [0, 3, 6]
    """
    wanted = min(wanted, total)
    return [number * total // wanted for number in range(wanted)]


def batch_size_for(image_size: tuple[int, int], most: int = 500) -> int:
    """Images to predict at once: `most` of 64x64 pixels, and of larger ones as many as have as many pixels.

    >>> batch_size_for((32, 32)), batch_size_for((224, 224)), batch_size_for((5000, 5000))
    (500, 40, 1)
    """
    height, width = image_size
    return max(1, min(most, most * 64 * 64 // (height * width)))
