"""Corruptions as transforms: any kind of image in, the same kind out."""

import warnings

import numpy as np
import pytest
import torch
from PIL import Image

from dign.core.errors import UserError
from dign.corruptions import Corrupt, RandomCorruption, corrupt
from dign.corruptions.transforms import _number_of

ARRAY = np.random.default_rng(0).integers(0, 256, (16, 20, 3), dtype=np.uint8)
TENSOR = torch.from_numpy(ARRAY).permute(2, 0, 1).contiguous()
EXPECTED = corrupt(TENSOR, "impulse_noise", 3, seed=7, first=_number_of(TENSOR))
NOISE = Corrupt("impulse_noise", 3, seed=7)


def as_array(image: torch.Tensor) -> np.ndarray:
    return image.permute(1, 2, 0).numpy()


def test_every_kind_of_image_gets_the_same_corruption():
    assert torch.equal(NOISE(TENSOR), EXPECTED)
    assert np.array_equal(NOISE(ARRAY), as_array(EXPECTED))
    picture = NOISE(Image.fromarray(ARRAY))
    assert picture.mode == "RGB" and np.array_equal(np.asarray(picture), as_array(EXPECTED))
    batch = torch.stack([TENSOR, TENSOR.flip(2)])
    assert torch.equal(NOISE(batch)[0], EXPECTED) and NOISE(batch).shape == batch.shape
    assert np.array_equal(NOISE(ARRAY[None])[0], as_array(EXPECTED))


@pytest.mark.parametrize(
    "make", [lambda: ARRAY[..., 0], lambda: ARRAY[..., :1], lambda: Image.fromarray(ARRAY[..., 0])]
)
def test_grayscale_keeps_its_form(make):
    image = make()
    made = Corrupt("gaussian_noise", 2)(image)
    assert type(made) is type(image) and np.asarray(made).shape == np.asarray(image).shape
    assert not np.array_equal(np.asarray(made), np.asarray(image))


def test_floats_stay_floats_and_nothing_is_written_to():
    values = torch.rand(3, 16, 16, dtype=torch.float64)
    before = values.clone()
    made = Corrupt("contrast", 5)(values)
    assert made.dtype == torch.float64 and torch.equal(values, before)
    assert torch.equal(made, corrupt(values, "contrast", 5))
    array = np.random.default_rng(0).random((16, 16, 3)).astype(np.float32)
    assert Corrupt("contrast", 5)(array).dtype == np.float32


def test_without_a_seed_torch_decides_and_every_call_differs():
    noise = Corrupt("gaussian_noise", 5)
    torch.manual_seed(1)
    first, second = noise(TENSOR), noise(TENSOR)
    torch.manual_seed(1)
    assert torch.equal(noise(TENSOR), first) and not torch.equal(first, second)


def test_with_a_seed_the_image_decides():
    assert torch.equal(NOISE(TENSOR), NOISE(TENSOR))
    other = Corrupt("impulse_noise", 3, seed=8)
    assert not torch.equal(NOISE(TENSOR), other(TENSOR))
    flat = torch.full((3, 16, 16), 100, dtype=torch.uint8)
    where = [(NOISE(flat + level) != flat + level).any(0) for level in (0, 1)]
    assert not torch.equal(*where), "images that differ get other draws"


def test_severity_zero_is_a_copy():
    made = Corrupt("fog", 0)(TENSOR)
    assert torch.equal(made, TENSOR) and made.data_ptr() != TENSOR.data_ptr()


def test_random_corruptions_are_of_the_chosen_ones():
    torch.manual_seed(0)
    batch = torch.randint(0, 256, (60, 3, 16, 16), dtype=torch.uint8)
    made = RandomCorruption(["contrast", "color_quant"], [1, 5], p=0.5)(batch)
    found = []
    for image, result in zip(batch, made, strict=True):
        options = [corrupt(image, name, severity) for name in ("contrast", "color_quant") for severity in (1, 5)]
        found.append(next((i for i, option in enumerate([image, *options]) if torch.equal(option, result)), None))
    counts = [found.count(kind) for kind in (0, 1, 2, 3, 4)]
    assert sum(counts) == 60 and 18 <= counts[0] <= 42 and min(counts[1:]) >= 1, counts


def test_workers_of_a_loader_differ_and_repeat_with_the_seed():
    class Copies(torch.utils.data.Dataset):
        def __len__(self) -> int:
            return 4

        def __getitem__(self, index: int) -> torch.Tensor:
            return RandomCorruption(["gaussian_noise"], [5])(TENSOR)

    def epoch() -> torch.Tensor:
        generator = torch.Generator().manual_seed(3)
        return torch.cat(list(torch.utils.data.DataLoader(Copies(), batch_size=2, num_workers=2, generator=generator)))

    first = epoch()
    assert len({image.numpy().tobytes() for image in first}) == 4
    assert torch.equal(epoch(), first)


def test_inside_a_compose_of_torchvision():
    transforms = pytest.importorskip("torchvision.transforms")
    both = transforms.Compose([Corrupt("fog", 3, seed=0), RandomCorruption(), transforms.ToTensor()])
    assert both(Image.fromarray(ARRAY)).shape == (3, 16, 20)
    v2 = pytest.importorskip("torchvision.transforms.v2")
    assert v2.Compose([v2.ToImage(), Corrupt("fog", 3)])(Image.fromarray(ARRAY)).shape == (3, 16, 20)


def test_they_print_what_they_do():
    assert repr(NOISE) == "Corrupt('impulse_noise', 3)"
    assert repr(RandomCorruption(["fog"], [1])) == "RandomCorruption(1 corruptions, severities [1], p=1.0)"


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: Corrupt("fogg", 1), "Did you mean 'fog'"),
        (lambda: Corrupt("fog", 6), "invalid severity 6"),
        (lambda: Corrupt("fog", 1, profile="cifar100"), "Did you mean 'cifar'"),
        (lambda: RandomCorruption("fog"), "names must be a list"),
        (lambda: RandomCorruption([]), "nothing to draw from"),
        (lambda: RandomCorruption(["fog"], p=2), "probability"),
        (lambda: NOISE([1]), "not a list"),
        (lambda: NOISE(Image.new("RGBA", (16, 16))), r"convert\('RGB'\)"),
        (lambda: NOISE(np.zeros((3, 16, 16), np.uint8)), "channels last"),
        (lambda: NOISE(torch.zeros(16, 16)), r"\(C,H,W\) or"),
    ],
)
def test_wrong_input_is_a_user_error(make, message):
    with pytest.raises(UserError, match=message):
        make()


def test_sixteen_bits_and_read_only_arrays_without_a_warning() -> None:
    deep = ARRAY[..., 0].astype(np.uint16) * 257
    deep.flags.writeable = False
    fog = Corrupt("fog", 3, seed=0)
    picture = fog(Image.fromarray(deep))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        array = fog(deep)
    assert picture.mode == "I;16" and array.dtype == np.uint16
    assert np.array_equal(np.asarray(picture), array) and not np.array_equal(array, deep)
    assert RandomCorruption(["contrast"], p=1.0)(np.stack([deep[..., None]] * 2)).dtype == np.uint16
