"""The images of every step as the model is given them: chosen, loaded, augmented.

All of it follows from the run's seed and the number of the step, so that a resumed run needs nothing of it saved.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache, partial

import torch
from torch import Tensor

from dign.augment.train_transforms import alternating_flips, shrink
from dign.core.pixels import to_float
from dign.core.placement import copy_to_device
from dign.core.progress import TerminalBar
from dign.core.seeds import derive_seed
from dign.data.cache import cache_root
from dign.data.crop_batches import CropBatches, count_workers
from dign.data.crops import RandomCrop
from dign.data.dataset import DataSet
from dign.data.sampling import draw_order
from dign.data.shrunk_pictures import shrink_pictures
from dign.parallel.launching import local_rank
from dign.parallel.team import Team
from dign.runs.folder import Run
from dign.training.batches import BatchSource, DecodedBatches, make_batch_source
from dign.training.setup import RunLength, make_transforms


class StepImages:
    """The part of each step's batch that this process holds.

    Args:
        run: The run that is trained.
        data: Its data set.
        length: How long the run is.
        team: The processes that share each batch.
        device: Where the steps are computed.
        first: The first step that will be asked for.
    """

    def __init__(
        self, run: Run, data: DataSet, length: RunLength, team: Team, device: torch.device, first: int
    ) -> None:
        self._run, self._config, self._train, self._team, self._device = run, run.config, data.train, team, device
        self._length = length
        config = run.config
        self._transforms = make_transforms(config)
        self._order = lru_cache(maxsize=2)(
            partial(draw_order, data.train.labels, seed=config.seed, balance=config.balance)
        )
        self._flips = lru_cache(maxsize=1)(partial(alternating_flips, len(data.train), seed=config.seed))
        self._source = self._open_source(first)

    @property
    def waited(self) -> float:
        """Seconds that steps have waited for pictures to be decoded; 0 where none are."""
        return self._source.waited if self._config.scale else 0.0

    def close(self) -> None:
        """Let go of threads, processes and files."""
        self._source.close()

    def get(self, step: int) -> tuple[Tensor, Tensor]:
        """Images (n,3,H,W) in [0,1] and labels (n,), on the device."""
        images, y = self._source.get(step)
        x = to_float(images, channels_last=self._config.channels_last)
        mirrored = None
        if self._config.alternate:
            flips = self._flips(step // self._length.steps_per_epoch)
            mirrored = copy_to_device(flips[self._indices(step)], self._device)
        draws = self._team.generator(self._config.seed, "transforms", step, self._device)
        x = self._transforms(x, draws, mirrored=mirrored)
        return (shrink(x) if step < self._config.small_first * self._length.total else x), y

    def _indices(self, step: int) -> Tensor:
        """The images of a step that this process holds, as indices on the host."""
        epoch, position = divmod(step, self._length.steps_per_epoch)
        size = self._length.batch_size
        return self._team.local_slice(self._order(epoch)[position * size : (position + 1) * size])

    def _open_source(self, first: int) -> BatchSource:
        """Where the images of the steps from `first` on come from: random crops of pictures, or the stored images."""
        config, train = self._config, self._train
        if not config.scale:
            last, share = self._length.total - 1, config.data_memory
            return make_batch_source(train, self._indices, self._device, last=last, share=share)
        assert train.pictures is not None  # a configuration with random crops names a folder
        crop = RandomCrop(config.size, config.scale, config.ratio, self._run.framing)
        with TerminalBar(visible=local_rank() == 0) as bar:
            pictures = shrink_pictures(train.pictures, crop, cache_root(), bar, cache=config.cache)
        workers = count_workers(config.workers, config.devices)
        pin, seed = self._device.type == "cuda", derive_seed(config.seed, "crops")
        crops = CropBatches(pictures, crop, self._plan(first), seed=seed, workers=workers, pin=pin)
        return DecodedBatches(crops, train.labels, self._indices, self._device)

    def _plan(self, first: int) -> Iterator[tuple[int, Tensor]]:
        """For each step from `first` on its epoch and the numbers of its images; workers ask for it ahead of time."""
        for step in range(first, self._length.total):
            yield step // self._length.steps_per_epoch, self._indices(step)
