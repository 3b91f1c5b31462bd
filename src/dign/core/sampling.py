"""Which of many images to take."""


def spread_indices(total: int, wanted: int) -> list[int]:
    """`wanted` of `total` images at equal distances, as published logs have them: every 20th of 10 000 for 500.

    >>> spread_indices(10, 3)
    [0, 3, 6]
    """
    step = max(1, total // wanted)
    return list(range(0, total, step))[:wanted]
