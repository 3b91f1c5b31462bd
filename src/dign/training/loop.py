"""The training loop: one for all methods, models and devices."""

from __future__ import annotations

import math
import time
from contextlib import suppress
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from dign.augment.train_transforms import alternating_flips, shrink
from dign.core.errors import UserError, quote_path
from dign.core.files import read_json, write_json
from dign.core.pixels import to_float
from dign.core.provenance import now
from dign.core.seeds import derive_seed, make_generator, preserve_global_generators, seed_global_generators
from dign.data.dataset import DataSet
from dign.methods.base import Method
from dign.models import whiten
from dign.models.winograd import use_winograd
from dign.parallel.batch_norm import RunningStatistics, synchronize_batch_norm
from dign.parallel.devices import check_compiler, describe_device
from dign.parallel.fabric import make_fabric
from dign.parallel.launching import torchrun_job_id
from dign.parallel.team import Team
from dign.runs.checkpoints import load_state, load_weights, save_state, save_weights
from dign.runs.config import RunConfig
from dign.runs.folder import Run, begun_by, check_free, load_run, locked
from dign.training.cost import work_done
from dign.training.interrupts import Interrupted, interruptible
from dign.training.logger import NullLogger, TrainingLogger
from dign.training.optimizers import make_optimizer
from dign.training.schedule import learning_rate
from dign.training.setup import batch_size_of, create, make_transforms, prepared, steps_per_epoch
from dign.training.starting_weights import Start, freeze, starting_weights
from dign.training.step_log import Step, stacked, unstacked
from dign.training.trackers import make_tracker
from dign.training.validation import validate

if TYPE_CHECKING:
    from lightning_fabric import Fabric

WRITTEN = ("checkpoint.safetensors", "best.safetensors", "best.json", "model.safetensors", "run.json", "metrics.jsonl")
"""The files of a run that training replaces."""
LOG_EVERY = 20
"""Steps between records. The loss is looked at only then, so that a GPU never waits for the host in between."""


class Diverged(UserError):
    """The loss, or a weight, is no longer a finite number."""


def train(config: RunConfig, out: Path | str, *, quiet: bool = False) -> Run:
    """Train a model as `config` says into the new folder `out`.

    Where torchrun starts its processes again because one has died, they go on with the run that they had begun.
    """
    fabric = make_fabric(config.device, config.precision, config.devices, config.nodes)
    team = Team.from_fabric(fabric)
    with team.all_or_none():  # what can be wrong is tried before anything is written
        begun = begun_by(torchrun_job_id(), config, out)
        if team.is_rank_zero and not begun:
            check_free(out)
        if config.compile:
            check_compiler(fabric.device)
        data, start = prepared(config, team)
    if team.gather(begun)[0]:  # a job has another name on every machine; the run knows that of the first process
        return resume(out, quiet=quiet)
    with (
        team.enter_on_rank_zero(locked(out)),
        team.report_dead_peer(f"go on with `dign train --resume {quote_path(out)}`"),
    ):
        with team.all_or_none():
            if team.is_rank_zero:
                create(config, out, data, start, team)
        return _Training(load_run(out), data, fabric, team, start).fit(quiet=quiet)


def resume(path: Path | str, *, quiet: bool = False, devices: int | None = None, nodes: int | None = None) -> Run:
    """Go on with a run where its last checkpoint was; the outcome is that of an undisturbed run.

    It may go on in another number of processes: `devices` on each of `nodes`.
    """
    run = load_run(path)
    if run.finished:
        _remove_leftovers(run)
        return run
    config = replace(run.config, devices=devices or run.config.devices, nodes=nodes or run.config.nodes)
    fabric = make_fabric(config.device, config.precision, config.devices, config.nodes)
    team = Team.from_fabric(fabric)
    with team.all_or_none():
        if config.compile:
            check_compiler(fabric.device)
        data = run.data()
        team.check_divides(batch_size_of(config, data))
        if not run.trained_on(data.train):
            raise UserError(f"The training images of {config.data} have changed since {path} began: start a new run.")
        if len(data.train) != run.info.get("training_images"):
            raise UserError(
                f"{path} began with {run.info.get('training_images')} training images, but {config.data} now has "
                f"{len(data.train)}: put the data back as it was, or start a new run."
            )
    with (
        team.enter_on_rank_zero(locked(path)),
        team.report_dead_peer(f"go on with `dign train --resume {quote_path(path)}`"),
    ):
        run = load_run(path)  # another process may have held it, and finished it
        return run if run.finished else _Training(run, data, fabric, team).fit(quiet=quiet)


class _Training:
    """The parts of a run in memory."""

    def __init__(self, run: Run, data: DataSet, fabric: Fabric, team: Team, start: Start | None = None) -> None:
        config = run.config
        self.run, self.config, self.data = run, config, data
        self.fabric, self.team, self.device = fabric, team, fabric.device
        self.method: Method = run.method()
        self.transforms = make_transforms(config)
        self.batch_size = batch_size_of(config, data)
        self.steps_per_epoch = steps_per_epoch(config, data)
        self.total = config.epochs * self.steps_per_epoch
        self.pending: list[Step] = []
        self.seconds_before = 0.0
        self._place_on_device(start)

    def _place_on_device(self, start: Start | None) -> None:
        config = self.config
        self.model = self._initial_model(start)
        if config.sync_batch_norm:
            synchronize_batch_norm(self.model, self.team)
        self.frozen_norms = freeze(self.model, config.freeze)
        if config.channels_last:
            self.model = self.model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        if config.winograd:
            use_winograd(self.model)
        optimizer = make_optimizer(
            config.optimizer,
            [parameter for parameter in self.model.parameters() if parameter.requires_grad],
            lr=config.lr,
            momentum=config.momentum,
            weight_decay=config.weight_decay,
        )
        # A graph for each shape: a run has few, and one for any shape would be slower.
        forward: Any = torch.compile(self.model, dynamic=False) if config.compile else self.model
        self.wrapped, self.optimizer = self.fabric.setup(forward, optimizer)
        self.statistics = RunningStatistics(self.model, self.team)
        self.images = self.data.train.images.to(self.device)
        self.labels = self.data.train.labels.to(self.device)

    def _initial_model(self, start: Start | None) -> nn.Module:
        """The model before the first step; a checkpoint, where there is one, replaces all of it later."""
        model = self.run.untrained_model()
        if self.run.checkpoint.exists():
            return model
        if not self.config.init:
            whiten(model, self.data.train.images)
            return model
        start = start or starting_weights(self.config, model)
        assert start is not None  # config.init is set
        if start.digest != self.run.info["init"]["sha256"]:
            raise UserError(f"{self.config.init} holds other weights than when the run began: start a new run.")
        start.load_into(model)
        return model

    def _train_mode(self) -> None:
        """Training mode, but for the batch norms of frozen parts, whose statistics are frozen as well."""
        self.wrapped.train()
        for norm in self.frozen_norms:
            norm.eval()

    def fit(self, *, quiet: bool) -> Run:
        with self.team.all_or_none():
            first = self._restore()
            logger = self._monitor(first, quiet)
        saved = self.clock = time.monotonic()
        self._train_mode()
        with logger, interruptible() as interrupted, preserve_global_generators(self.device):
            for note in (*self.run.info.get("notes", ()), *self._moved()):
                logger.say(note)
            for step in range(first, self.total):
                self._step(step)
                done = step + 1
                epoch = done // self.steps_per_epoch
                if done % LOG_EVERY == 0 or done == self.total:
                    self._record(logger, done, epoch)
                if done % self.steps_per_epoch == 0 and self._validation_due(epoch):
                    self._validate(logger, done, epoch)
                late = time.monotonic() - saved >= self.config.checkpoint_seconds
                stopping, late = self.team.any(bool(interrupted), late)
                if stopping or late:
                    self._save_checkpoint(done)
                    saved = time.monotonic()
                if stopping and done < self.total:
                    raise Interrupted(f"Stopped after step {done} of {self.total}.")
        with self.team.all_or_none():
            if self.team.is_rank_zero:
                self._finish()
        return load_run(self.run.path)

    def _moved(self) -> list[str]:
        """What differs from where the run began, if it goes on elsewhere."""
        before, here = self.run.info.get("machine", {}), describe_device(self.config.precision, self.device)
        return [
            f"This run began with {name} {before[name]} and goes on with {value}: "
            "its weights will not be those of an undisturbed run."
            for name, value in here.items()
            if name in before and before[name] != value
        ]

    def _monitor(self, first: int, quiet: bool) -> TrainingLogger:
        if not self.team.is_rank_zero:
            return NullLogger()
        return TrainingLogger(
            self.run.path,
            total=self.total,
            first=first,
            images_per_step=self.batch_size,
            title=f"{self.method.title} {self.config.model}",
            quiet=quiet,
            work=partial(work_done, self.config),
            tracker=make_tracker(self.config.track, self.run.path, first, self._tracked_settings()),
        )

    def _tracked_settings(self) -> dict[str, Any]:
        """The configuration as a flat table."""
        values = asdict(self.config)
        methods = values.pop("settings")
        return values | {f"{name}.{key}": value for name, table in methods.items() for key, value in table.items()}

    def _step(self, step: int) -> None:
        """One update of the weights: everything random in it follows from the seed and the step's number."""
        rate = learning_rate(self.config.schedule, self.config.lr, step, self.total, warmup=self.config.warmup)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        x, y = self._batch(step)
        own = derive_seed(self.config.seed, "model", step * self.team.world_size + self.team.rank)
        seed_global_generators(own, self.device)  # for what the model itself draws, as dropout does
        method = self.method.at(step / self.total)
        generator = self.team.generator(self.config.seed, "method", step, self.device)
        outcome = method(self.wrapped, x, y, generator=generator)
        self.fabric.backward(outcome.loss)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.statistics.average()
        means = self.team.mean({"": outcome.loss.detach(), **outcome.terms})
        self.pending.append(Step(step, means.pop(""), means))

    def _batch(self, step: int) -> tuple[Tensor, Tensor]:
        epoch, position = divmod(step, self.steps_per_epoch)
        order = self._order(epoch)[position * self.batch_size : (position + 1) * self.batch_size]
        order = self.team.local_slice(order)
        x = to_float(self.images[order], channels_last=self.config.channels_last)
        mirrored = self._mirrored[order] if self.config.alternate else None
        draws = self.team.generator(self.config.seed, "transforms", step, self.device)
        x = self.transforms(x, draws, mirrored=mirrored)
        if step < self.config.small_first * self.total:
            x = shrink(x)
        return x, self.labels[order]

    def _order(self, epoch: int) -> Tensor:
        """The order of the training images in an epoch, drawn once and kept while the epoch lasts."""
        if getattr(self, "_ordered_epoch", None) != epoch:
            generator = make_generator(self.config.seed, "order", epoch)
            self._ordered = torch.randperm(len(self.labels), generator=generator).to(self.device)
            if self.config.alternate:
                self._mirrored = alternating_flips(len(self.labels), epoch, self.config.seed).to(self.device)
            self._ordered_epoch = epoch
        return self._ordered

    def _record(self, logger: TrainingLogger, done: int, epoch: int) -> None:
        with self.team.all_or_none():
            self._check_finite()
            if self.pending:
                loss = torch.stack([step.loss for step in self.pending]).mean().item()
                names = self.pending[-1].terms
                terms = {name: torch.stack([step.terms[name] for step in self.pending]).mean().item() for name in names}
                logger.trained(done, epoch, loss, terms, self.optimizer.param_groups[0]["lr"])
                self.pending.clear()

    def _check_finite(self) -> None:
        """Stop at the first step whose loss is not finite; called before anything is saved."""
        losses = torch.stack([step.loss for step in self.pending]).tolist() if self.pending else []
        for step, loss in zip(self.pending, losses, strict=True):
            if not math.isfinite(loss):
                terms = ", ".join(f"{name} {value.item():.4g}" for name, value in step.terms.items())
                raise Diverged(f"The loss is not finite at step {step.number} ({terms}); {self._where_to_go_on()}")
        sums = torch.stack([parameter.detach().sum() for parameter in self.model.parameters()])
        if not bool(sums.isfinite().all()):
            raise Diverged(f"A weight is not finite after step {self.pending[-1].number}; {self._where_to_go_on()}")

    def _where_to_go_on(self) -> str:
        if self.run.checkpoint.exists():
            kept = f"the last good checkpoint is {self.run.checkpoint}"
        else:
            kept = f"no checkpoint was written yet, so remove {self.run.path} and start anew"
        return f"{kept}. Try a smaller --lr."

    def _validation_due(self, epoch: int) -> bool:
        every = self.config.validate_every
        due = epoch == self.config.epochs or (every > 0 and epoch % every == 0)
        return due and len(self.data.validation) > 0

    def _validate(self, logger: TrainingLogger, done: int, epoch: int) -> None:
        self._record(logger, done, epoch)
        split, seed = self.data.validation, self.config.seed
        scores = validate(self.wrapped, self.method, split, self.device, seed=seed, team=self.team)
        self._train_mode()
        with self.team.all_or_none():
            logger.validated(done, epoch, scores)
            if self.team.is_rank_zero and self.config.keep == "best" and scores["accuracy"] > self._best_accuracy():
                save_weights(self.run.path / "best.safetensors", self.model)
                write_json(self.run.path / "best.json", {"step": done, "epoch": epoch, **scores})
        logger.restart_clock()

    def _best_accuracy(self) -> float:
        path = self.run.path / "best.json"
        if not path.exists():
            return -1.0
        with suppress(OSError, ValueError, KeyError, TypeError, OverflowError):
            accuracy = float(read_json(path)["accuracy"])
            if 0 <= accuracy <= 100:
                return accuracy
        raise UserError(f"{path} is damaged: remove it, and the best weights from here on are kept.")

    def _save_checkpoint(self, done: int) -> None:
        with self.team.all_or_none():
            self._check_finite()
            if self.team.is_rank_zero:
                pending, seconds = stacked(self.pending), self._seconds()
                save_state(self.run.checkpoint, self.model, self.optimizer, pending, step=done, seconds=seconds)

    def _restore(self) -> int:
        """Bring weights and optimizer back from the last checkpoint, if there is one; returns the steps done."""
        if not self.run.checkpoint.exists():
            return 0
        metadata, pending = load_state(self.run.checkpoint, self.model, self.optimizer)
        try:
            self.pending = unstacked({name: tensor.to(self.device, copy=True) for name, tensor in pending.items()})
            self.seconds_before, step = float(metadata["seconds"]), int(metadata["step"])
        except (KeyError, ValueError, IndexError, TypeError) as error:
            raise UserError(f"{self.run.checkpoint} is not a checkpoint of a run: it names no step.") from error
        if not 0 <= step <= self.total or not 0 <= self.seconds_before < math.inf:
            raise UserError(f"{self.run.checkpoint} is damaged: step {step} is none of the run's {self.total}.")
        return step

    def _seconds(self) -> float:
        """Time spent on the steps of this run so far, over all the times it was taken up."""
        return round(self.seconds_before + time.monotonic() - self.clock, 2)

    def _finish(self) -> None:
        best = self.run.path / "best.safetensors"
        if self.config.keep == "best" and best.exists():
            load_weights(best, self.model)
        write_json(self.run.path / "run.json", {**self.run.info, "finished": now(), "seconds": self._seconds()})
        save_weights(self.run.weights, self.model)
        _remove_leftovers(self.run)


def _remove_leftovers(run: Run) -> None:
    """What a finished run needs no more, and what writers left half done who were killed on the way to it."""
    halves = (run.path / f".{name}.partial" for name in WRITTEN)
    for leftover in (run.checkpoint, run.path / "best.safetensors", *halves):
        leftover.unlink(missing_ok=True)
