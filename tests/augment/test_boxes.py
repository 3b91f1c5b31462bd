import torch

from dign.augment.boxes import box_masks, draw_centers


def test_boxes_pixel_by_pixel():
    generator = torch.Generator().manual_seed(0)
    first = torch.randint(-4, 8, (50, 2), generator=generator)
    last = first + torch.randint(0, 9, (50, 2), generator=generator)
    masks = box_masks(first, last, (5, 7))
    for image, ((top, left), (bottom, right)) in enumerate(zip(first.tolist(), last.tolist(), strict=True)):
        for row in range(5):
            for column in range(7):
                inside = top <= row < bottom and left <= column < right
                assert masks[image, 0, row, column] == inside


def test_every_pixel_is_the_center_as_often():
    draw = torch.rand(20_000, 2, generator=torch.Generator().manual_seed(0))
    centers = draw_centers(draw, (4, 2)).long()
    counts = torch.bincount(centers[:, 0] * 2 + centers[:, 1], minlength=8)
    assert len(counts) == 8 and (counts / 20_000 - 1 / 8).abs().max() < 0.01
