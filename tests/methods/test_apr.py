import torch

from dign.augment.recombination import recombine_paired, recombine_single
from dign.methods import APR


def test_the_images_are_put_together_as_published(recorder, x, y):
    APR()(recorder, x, y, generator=torch.Generator().manual_seed(0))
    draw = torch.Generator().manual_seed(0)
    single, paired = recorder.seen[0].split(6)
    expected = recombine_single(x, 0.5, 3.0, draw)
    torch.testing.assert_close(single, expected)
    torch.testing.assert_close(paired, recombine_paired(expected, 0.6, draw))
