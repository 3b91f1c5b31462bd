"""Batch norm where several processes share a batch: over all of it, or at least with the same running statistics."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, distributed, nn

from dign.core.errors import UserError
from dign.core.freezing import BATCH_NORMS
from dign.parallel.team import Team

_Norm = nn.modules.batchnorm._BatchNorm


class SynchronizedBatchNorm(_Norm):
    """Batch norm over the shares of all processes, as one process computes it over the whole batch.

    With mean m_i and variance v_i of the i-th of equally large shares: m = mean_i m_i, v = mean_i (v_i + (m_i - m)^2).
    Gradients flow through both, to all processes, also second ones. Torch's own SyncBatchNorm does the same on GPUs
    alone, and without second ones.
    """

    like_torch = True

    def _check_input_dim(self, input: Tensor) -> None:
        pass

    def forward(self, x: Tensor) -> Tensor:
        if not self.training and self.track_running_stats:
            return super().forward(x)
        axes = [axis for axis in range(x.dim()) if axis != 1]
        variances, means = torch.var_mean(_at_least_float32(x), dim=axes, correction=0)
        ranks, rank = distributed.get_world_size(), distributed.get_rank()
        place = torch.arange(ranks, device=x.device).eq(rank).view(-1, 1, 1)
        shares: Tensor = _Sum.apply(place * torch.stack((means, variances)))  # type: ignore[no-untyped-call]
        mean = shares[:, 0].mean(0)
        variance = (shares[:, 1] + (shares[:, 0] - mean).square()).mean(0)
        if self.training and self.track_running_stats:
            self._track(mean.detach(), variance.detach(), ranks * x.numel() // len(mean))
        return self._normalize(x, mean, variance)

    def _normalize(self, x: Tensor, mean: Tensor, variance: Tensor) -> Tensor:
        scale = (variance + self.eps).rsqrt()
        scale = scale if self.weight is None else scale * self.weight
        shift = -mean * scale if self.bias is None else self.bias - mean * scale
        shape = (1, -1, *[1] * (x.dim() - 2))
        return torch.addcmul(shift.view(shape), _at_least_float32(x), scale.view(shape)).to(x.dtype)

    @torch.no_grad()
    def _track(self, mean: Tensor, variance: Tensor, count: int) -> None:
        assert self.running_mean is not None and self.running_var is not None and self.num_batches_tracked is not None
        self.num_batches_tracked.add_(1)
        share = 1 / float(self.num_batches_tracked) if self.momentum is None else self.momentum
        self.running_mean.lerp_(mean, share)
        self.running_var.lerp_(variance * (count / max(count - 1, 1)), share)


def _at_least_float32(x: Tensor) -> Tensor:
    return x.to(torch.promote_types(x.dtype, torch.float32))


class _Sum(torch.autograd.Function):
    """The sum over all processes. Every loss depends on every summand, and so do the gradients."""

    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        total = values.clone(memory_format=torch.contiguous_format)
        distributed.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        total: Tensor = _Sum.apply(gradient)  # type: ignore[no-untyped-call]  # which can be differentiated again
        return total


def synchronize_batch_norm(model: nn.Module, team: Team) -> nn.Module:
    """Replace the model's batch norms by ones over all processes, in place.

    Args:
        model: Its parameters, buffers and their names stay the same. It must not be a batch norm itself.
        team: With one process the model is left as it is.

    Returns:
        The model.

    Raises:
        UserError: The model has a batch norm that is not one of torch's own.
    """
    if team.world_size == 1:
        return model
    for parent in list(model.modules()):
        for name, norm in list(parent.named_children()):
            if isinstance(norm, _Norm):
                setattr(parent, name, _synchronize(norm))
    return model


def _synchronize(norm: _Norm) -> SynchronizedBatchNorm:
    if type(norm) not in BATCH_NORMS:
        raise UserError(
            f"sync_batch_norm supports torch's own batch norms, not this model's {type(norm).__name__}: train without "
            "it, or choose another model."
        )
    made = SynchronizedBatchNorm(norm.num_features, norm.eps, norm.momentum, norm.affine, norm.track_running_stats)
    made.__dict__.update(norm.__dict__)  # the same parameters, buffers and mode
    return made


class RunningStatistics:
    """The running statistics of batch norms that see a share of each batch, averaged over the processes.

    Without this every process would have its own, and a checkpoint would keep those of rank zero.
    """

    def __init__(self, model: nn.Module, team: Team) -> None:
        self._team = team
        self._tensors: list[Tensor] = []
        for norm in model.modules() if team.world_size > 1 else ():
            mean, variance = getattr(norm, "running_mean", None), getattr(norm, "running_var", None)
            if mean is not None and variance is not None and not isinstance(norm, SynchronizedBatchNorm):
                self._tensors += [mean, variance]

    @torch.no_grad()
    def average(self) -> None:
        if not self._tensors:
            return
        flat = torch.cat([tensor.flatten() for tensor in self._tensors])
        distributed.all_reduce(flat)
        means = flat.div_(self._team.world_size).split([tensor.numel() for tensor in self._tensors])
        for tensor, mean in zip(self._tensors, means, strict=True):
            tensor.copy_(mean.view_as(tensor))
