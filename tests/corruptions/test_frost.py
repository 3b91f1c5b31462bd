import pytest
import torch

from dign.corruptions import corrupt, frost

HAVE_PHOTOGRAPHS = frost.frost_source() == "photographs"


@pytest.mark.slow
def test_frost_works_without_photographs_and_says_so(monkeypatch, clean) -> None:
    monkeypatch.setattr(frost, "_photograph_folder", lambda: None)
    frost._picture_table.cache_clear()
    try:
        assert frost.frost_source() == "procedural"
        made = corrupt(clean, "frost", 3, profile="cifar")
        assert 20 < float((made.float() - clean.float()).mean()) < 90
    finally:
        frost._picture_table.cache_clear()


def test_pieces_come_from_all_five_pictures_and_all_places(monkeypatch) -> None:
    pictures = tuple(torch.full((3, 60, 80), 50 * number, dtype=torch.uint8) for number in range(5))
    for picture in pictures:
        picture[:, :30] += 1
        picture[:, :, :40] += 2
    monkeypatch.setattr(frost, "frost_pictures", lambda: pictures)
    frost._picture_table.cache_clear()
    try:
        streams = frost.Streams(0, "pieces", torch.arange(2000))
        pieces = frost.random_pieces((3, 8, 8), 1.0, streams)
    finally:
        frost._picture_table.cache_clear()
    counts = pieces[:, 0, 0, 0].bincount(minlength=204)
    assert set(counts.nonzero().flatten().tolist()) == {50 * p + corner for p in range(5) for corner in range(4)}
    assert int(counts.view(-1).sum()) == 2000 and int(counts[counts > 0].min()) > 40


def test_shrinking_to_a_fifth_takes_every_fifth_pixel() -> None:
    picture = torch.randint(0, 256, (3, 100, 60), dtype=torch.uint8, generator=torch.Generator().manual_seed(5))
    assert torch.equal(frost._resize(picture, 0.2, 8, 8), picture[:, 2::5, 2::5])


def test_pictures_grow_where_the_image_is_larger() -> None:
    picture = torch.zeros((3, 50, 100), dtype=torch.uint8)
    assert min(a - b for a, b in zip(frost._resize(picture, 0.2, 200, 64).shape[1:], (200, 64), strict=True)) >= 0
