import math

import torch
from torch import nn
from torch.nn import functional

from dign.augment.noise2net import noise2net


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def plain_noise2net(x, strength, hidden, scale, seed):
    """Image by image with convolution and batch-norm modules in train mode, as published; biases included."""
    draws, host_seed = generator(seed), None
    host_seed = int(torch.rand(1, generator=draws).item() * 2**24)
    host = generator(host_seed)
    for _ in range(4):
        kernels = [1 + 2 * int(k) for k in torch.randint(2, (scale - 1,), generator=host)]
        dilations = torch.randint(1, 4, (scale - 1,), generator=host).tolist()
        x = x + strength * plain_block(x, hidden, scale, kernels, dilations, draws)
    return x


def plain_block(x, hidden, scale, kernels, dilations, draws):
    def weights(planes, inputs, kernel):
        drawn = torch.rand(len(x), planes, inputs * kernel**2, generator=draws)
        drawn = (2 * drawn - 1) / math.sqrt(inputs * kernel**2)
        return drawn.view(len(x), planes, kernel, kernel, inputs).permute(0, 1, 4, 2, 3)

    shapes = [(hidden * scale, 3, 1)] + [(hidden, hidden, kernel) for kernel in kernels] + [(3, hidden * scale, 1)]
    drawn = [weights(*shape) for shape in shapes]
    out = []
    for i in range(len(x)):
        first, *middle, last = (each[i] for each in drawn)

        def normalized(image):
            return nn.BatchNorm2d(image.shape[1]).train()(image)

        spread = functional.relu(normalized(functional.conv2d(x[i : i + 1], first)))
        parts = spread.split(hidden, dim=1)
        made, current = [], None
        for part, kernel, dilation, weight in zip(parts, kernels, dilations, middle, strict=False):
            current = part if current is None else current + part
            bias = torch.ones(hidden)
            padding = dilation * (kernel - 1) // 2
            current = functional.conv2d(current, weight, bias, padding=padding, dilation=dilation)
            current = functional.relu(normalized(current))
            made.append(current)
        out.append(normalized(functional.conv2d(torch.cat((*made, parts[-1]), 1), last)))
    return torch.cat(out).detach()


def test_it_is_the_published_network_image_by_image():
    x = torch.rand(3, 3, 12, 10, generator=generator())
    for seed in range(3):
        ours = noise2net(x, 0.3, generator=generator(seed))
        theirs = plain_noise2net(x, 0.3, 2, 4, seed)
        torch.testing.assert_close(ours, theirs, atol=2e-4, rtol=1e-4)


def test_the_same_image_twice_is_distorted_in_two_ways():
    x = torch.rand(1, 3, 16, 16, generator=generator()).expand(2, -1, -1, -1)
    out = noise2net(x, 0.3, generator=generator())
    assert (out[0] - out[1]).abs().mean() > 0.05


def test_strength_zero_changes_nothing_and_the_seed_decides():
    x = torch.rand(4, 3, 8, 8, generator=generator())
    assert torch.equal(noise2net(x, 0.0, generator=generator()), x)
    first, again, other = (noise2net(x, 0.3, generator=generator(seed)) for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
