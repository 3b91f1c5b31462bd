"""Where tensors are; the imagined GPUs of tests/gpu show that no copy waits."""

import torch

from dign.core.placement import copy_to_device, place_for_float64

CPU = torch.device("cpu")


def test_a_tensor_that_is_there_already_is_not_copied():
    values = torch.arange(4)
    assert copy_to_device(values, CPU) is values


def test_only_apple_s_gpus_hand_float64_to_the_cpu():
    assert [place_for_float64(name).type for name in ("cpu", "cuda:1", "mps")] == ["cpu", "cuda", "cpu"]
