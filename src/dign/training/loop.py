"""The training loop: one for all methods, models and devices."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from dign.core.errors import UserError
from dign.core.files import write_json
from dign.core.provenance import now
from dign.core.seeds import derive_seed, preserve_global_generators, seed_global_generators
from dign.data.dataset import DataSet
from dign.data.names import hide_folder_path
from dign.methods.base import Method
from dign.models import spread_indices, whiten
from dign.models.winograd import use_winograd
from dign.parallel.batch_norm import RunningStatistics, synchronize_batch_norm
from dign.parallel.devices import resolve_precision
from dign.parallel.team import Team
from dign.runs.calibrate import fit_calibrator
from dign.runs.calibrator import CALIBRATION_FILE, write_calibrator
from dign.runs.checkpoints import load_state, save_state, save_weights
from dign.runs.folder import Run, load_run
from dign.runs.held_out import seen_by_init
from dign.training.adaptation import Adaptation
from dign.training.averaging import WeightAverage
from dign.training.best_weights import BEST_FILES, BestWeights
from dign.training.compiling import CompiledStep
from dign.training.cost import work_curve
from dign.training.health import (
    check_finite,
    explain_out_of_memory,
    note_chance_level,
    note_divergence,
    note_move,
    note_waiting,
)
from dign.training.interrupts import Interrupted, catch_signals
from dign.training.logger import NullLogger, TrainingLogger
from dign.training.optimizers import make_optimizer
from dign.training.schedule import learning_rate
from dign.training.setup import RunLength
from dign.training.starting_weights import StartingWeights, freeze, group_parameters, load_starting_weights
from dign.training.step_images import StepImages
from dign.training.step_log import Step, stack, unstack
from dign.training.trackers import make_tracker
from dign.training.validation import validate

if TYPE_CHECKING:
    from lightning_fabric import Fabric

WRITTEN = (
    "checkpoint.safetensors", *BEST_FILES, "model.safetensors", "run.json", "metrics.jsonl", CALIBRATION_FILE,
)  # fmt: skip
"""The files of a run that training writes."""
LOG_EVERY = 20
"""Steps between records. The loss is read only then, so that the GPU never waits for the host in between."""
WHITENING_IMAGES = 5_000
"""How many training images a whitening first layer is set from."""

Translate = Callable[[str], str]
"""Rewrites messages for the user: the command line shows options where the library names parameters."""


class TrainingLoop:
    """The state of a run while it trains."""

    def __init__(
        self, run: Run, data: DataSet, fabric: Fabric, team: Team, start: StartingWeights | None = None
    ) -> None:
        config = run.config
        self.run, self.config, self.data = run, config, data
        self.fabric, self.team, self.device = fabric, team, fabric.device
        self.method: Method = self._settle(run.method())
        self.length = RunLength.of(config, data)
        self.adaptation = Adaptation(self.method, self.length.batch_size, self.length.steps_per_epoch)
        self.unlogged: list[Step] = []
        self.last_loss: float | None = None
        self.noticed_divergence = False
        self.last_validation: dict[str, float] | None = None
        criterion = "balanced_accuracy" if config.balance else "accuracy"
        self.best = BestWeights(run.path, criterion) if config.keep == "best" else None
        self.seconds_before = 0.0
        self._place_on_device(start)

    def _settle(self, method: Method) -> Method:
        """The method with what it needs beside the model, which the first process makes and all then find."""
        how: dict[str, Any] = {"seed": self.config.seed, "device": self.device}
        with self.team.all_or_none():
            if self.team.is_rank_zero:
                method.settle(self.run.path, self.data.train, **how)
        return method.settle(self.run.path, self.data.train, **how)

    def _place_on_device(self, start: StartingWeights | None) -> None:
        config = self.config
        self.model = self._initial_model(start)
        if config.sync_batch_norm:
            synchronize_batch_norm(self.model, self.team)
        self.frozen_norms = freeze(self.model, config.freeze, norms=config.freeze_norms)
        if config.channels_last:
            self.model = self.model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        if config.winograd:
            use_winograd(self.model)
        optimizer = make_optimizer(
            config.optimizer,
            group_parameters(self.model, config.head_lr),
            lr=config.lr,
            momentum=config.momentum,
            weight_decay=config.weight_decay,
        )
        # One graph per shape: a run has few shapes, and a graph for all of them would be slower.
        # What compiled models give cannot be differentiated twice, and they take no hooks: then the whole step is
        # compiled, or nothing.
        inside = bool(self.method.cost.second_order) or any(part.reach(self.model) for part in self.method.parts)
        compiles = config.compile and not inside
        forward: Any = torch.compile(self.model, dynamic=False) if compiles else self.model
        self.wrapped, self.optimizer = self.fabric.setup(forward, optimizer, _reapply_compile=False)
        self.compiled = self._compile_step()
        self.statistics = RunningStatistics(self.model, self.team)
        self.average = WeightAverage(self.model, config.ema) if config.ema else None

    def _compile_step(self) -> CompiledStep | None:
        """The whole step, if it is to be compiled: of the model itself, whose gradients the team then averages."""
        if not self.config.compile or self.adaptation.adapts:
            return None
        precision = resolve_precision(self.config.precision, self.device)
        return CompiledStep(self.method.at(1.0), self.model, self.device, precision)

    def _initial_model(self, start: StartingWeights | None) -> nn.Module:
        """The model before the first step; a checkpoint, if there is one, replaces its weights later."""
        model = self.run.untrained_model()
        if self.run.checkpoint.exists():
            return model
        if not self.config.init:
            train = self.data.train
            whiten(model, train.take(spread_indices(len(train), WHITENING_IMAGES, train.image_size)))
            return model
        start = start or load_starting_weights(self.config, model)
        assert start is not None  # config.init is set
        if start.digest != self.run.info["init"]["sha256"]:
            raise UserError(f"{self.config.init} has changed since the run was started: start a new run.")
        start.load_into(model)
        return model

    def _train_mode(self) -> None:
        """Training mode, except for the batch norms of frozen parts, whose statistics are frozen too."""
        self.wrapped.train()
        for norm in self.frozen_norms:
            norm.eval()

    def fit(self, *, quiet: bool, translate: Translate = str) -> Run:
        with self.team.all_or_none():
            first = self._restore()
            self.images = StepImages(self.run, self.data, self.length, self.team, self.device, first)
            logger = self._make_logger(first, quiet, translate)
        saved = self.clock = time.monotonic()
        self._train_mode()
        generators = preserve_global_generators(self.device)
        with logger, closing(self.images), catch_signals() as interrupted, generators:
            for note in (*self.run.info.get("notes", ()), *note_move(self.run, self.config, self.device)):
                logger.log_message(note)
            for step in range(first, self.length.total):
                with explain_out_of_memory(self.run, self.length.batch_size, self.device):
                    self._step(step)
                self._log_change(logger, step)
                done = step + 1
                epoch = done // self.length.steps_per_epoch
                logger.advance(done)
                if done % LOG_EVERY == 0 or done == self.length.total:
                    self._log_steps(logger, done, epoch)
                if done % self.length.steps_per_epoch == 0 and self._is_validation_due(epoch):
                    self._validate(logger, done, epoch)
                late = time.monotonic() - saved >= self.config.checkpoint_seconds
                stopping, late = self.team.any(bool(interrupted), late)
                if stopping or late:
                    self._save_checkpoint(done)
                    saved = time.monotonic()
                if stopping and done < self.length.total:
                    raise Interrupted(f"Stopped after step {done} of {self.length.total}.")
            for note in self._closing_notes():
                logger.log_message(note)
        with self.team.all_or_none():
            if self.team.is_rank_zero:
                self._finish()
        return load_run(self.run.path)

    def _closing_notes(self) -> list[str]:
        losses = [self.last_loss, *([self.last_validation["loss"]] if self.last_validation else [])]
        notes = note_chance_level(losses, len(self.data.classes), self.config.lr)
        return notes + note_waiting(self.images.waited, time.monotonic() - self.clock, self.config)

    def _make_logger(self, first: int, quiet: bool, translate: Translate) -> TrainingLogger:
        if not self.team.is_rank_zero:
            return NullLogger()
        return TrainingLogger(
            self.run.path,
            total=self.length.total,
            first=first,
            epochs=self.config.epochs,
            images_per_step=self.length.batch_size,
            title=f"{self.method.title} {self.config.model}",
            quiet=quiet,
            work=work_curve(self.config),
            tracker=make_tracker(self.config.track, self.run.path, first, self._flatten_settings()),
            translate=translate,
        )

    def _flatten_settings(self) -> dict[str, Any]:
        """The configuration as a flat table."""
        values = asdict(self.config)
        methods = values.pop("settings")
        return values | {f"{name}.{key}": value for name, table in methods.items() for key, value in table.items()}

    def _step(self, step: int) -> None:
        """One update of the weights; everything random in it is seeded from the run's seed and the step."""
        rate = learning_rate(self.config.schedule, self.config.lr, step, self.length.total, warmup=self.config.warmup)
        for group in self.optimizer.param_groups:
            group["lr"] = rate * group["lr_scale"]
        x, y = self.images.get(step)
        seed = derive_seed(self.config.seed, "model", step * self.team.world_size + self.team.rank)
        seed_global_generators(seed, self.device)  # for random layers such as dropout
        method = self.adaptation.method_at(step).at(step / self.length.total)
        generator = self.team.generator(self.config.seed, "method", step, self.device)
        outcomes = [
            self._backward(method, part, generator, is_last=number == self.config.accumulate)
            for number, part in enumerate(self._parts(x, y), 1)
        ]
        if self.config.clip:
            # An error for a gradient that is not finite would wait for the device.
            most = self.config.clip
            self.fabric.clip_gradients(self.wrapped, self.optimizer, max_norm=most, error_if_nonfinite=False)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.statistics.average()
        if self.average is not None:
            self.average.update(step)
        means = self.team.mean(_average([{"": loss, **terms} for loss, terms, _ in outcomes]))
        self.unlogged.append(Step(step, means.pop(""), means))
        if self.adaptation.adapts:
            self.adaptation.record(step, _average([measured for _, _, measured in outcomes]), self.team)

    def _parts(self, x: Tensor, y: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """The parts of a batch that pass through the model one after the other."""
        size = len(x) // self.config.accumulate
        return zip(x.split(size), y.split(size), strict=True)

    def _backward(
        self, method: Method, part: tuple[Tensor, Tensor], generator: torch.Generator, *, is_last: bool
    ) -> tuple[Tensor, dict[str, Tensor], dict[str, Tensor]]:
        """Add up the gradients of a part of the batch; returns its loss, the terms of it, and what was measured."""
        measured: dict[str, Tensor] = {}
        # A method that is still ramping up would be compiled again at every step.
        step = self.compiled if self.compiled is not None and self.compiled.method == method else None
        with self.fabric.no_backward_sync(self.wrapped, enabled=not is_last or step is not None):
            if step is not None:
                loss, terms = step(*part, generator)
            else:
                outcome = method(self.wrapped, *part, generator=generator)
                loss, terms, measured = outcome.loss, outcome.terms, outcome.measured
            self.fabric.backward(loss / self.config.accumulate if self.config.accumulate > 1 else loss)
        if step is not None and is_last:  # the processes exchange the sum over the parts
            self.team.average_gradients(self.model.parameters())
        return loss.detach(), terms, measured

    def _log_change(self, logger: TrainingLogger, step: int) -> None:
        """Log the steps before this one where its loss has other terms: a method may change during training."""
        *before, last = self.unlogged
        if before and before[-1].terms.keys() != last.terms.keys():
            self.unlogged = before
            self._log_steps(logger, step, step // self.length.steps_per_epoch)
            self.unlogged = [last]

    def _log_steps(self, logger: TrainingLogger, done: int, epoch: int) -> None:
        with self.team.all_or_none():
            check_finite(self.unlogged, self.model, self.run)
            if self.unlogged:
                loss = torch.stack([step.loss for step in self.unlogged]).mean().item()
                names = self.unlogged[-1].terms
                terms = {
                    name: torch.stack([step.terms[name] for step in self.unlogged]).mean().item() for name in names
                }
                logger.log_step(done, epoch, loss, terms, self.optimizer.param_groups[0]["lr"])
                if not self.noticed_divergence and done >= max(2 * LOG_EVERY, self.length.total // 10):
                    for note in note_divergence(terms, done, len(self.data.classes), self.config.lr):
                        self.noticed_divergence = True
                        logger.log_message(note)
                self.unlogged.clear()
                self.last_loss = loss

    def _is_validation_due(self, epoch: int) -> bool:
        every = self.config.validate_every
        due = epoch == self.config.epochs or (every > 0 and epoch % every == 0)
        return due and len(self.data.validation) > 0

    def _validate(self, logger: TrainingLogger, done: int, epoch: int) -> None:
        self._log_steps(logger, done, epoch)
        split, seed = self.data.validation, self.config.seed
        with self._averaged():
            scores = validate(self.wrapped, self.method, split, self.device, seed=seed, team=self.team)
        self._train_mode()
        with self.team.all_or_none(), self._averaged():
            logger.log_validation(done, epoch, scores)
            self.last_validation = scores
            if self.team.is_rank_zero and self.best is not None:
                self.best.offer(self.model, scores, step=done, epoch=epoch)
        logger.restart_clock()

    def _save_checkpoint(self, done: int) -> None:
        with self.team.all_or_none():
            check_finite(self.unlogged, self.model, self.run)
            if self.team.is_rank_zero:
                unlogged, average = stack(self.unlogged), self.average.tensors if self.average else {}
                facts = {"step": done, "seconds": self._seconds(), **self._scaler_state(), **self.adaptation.state()}
                save_state(self.run.checkpoint, self.model, self.optimizer, unlogged, average, **facts)

    def _scaler_state(self) -> dict[str, Any]:
        """How the gradients of float16 are scaled just now; nothing in other precisions."""
        state = self.fabric.strategy.precision.state_dict()
        return {"scale": json.dumps(state)} if state else {}

    def _restore(self) -> int:
        """Restore weights and optimizer from the last checkpoint, if there is one; returns the steps done."""
        if not self.run.checkpoint.exists():
            return 0
        metadata, unlogged, average = load_state(self.run.checkpoint, self.model, self.optimizer)
        try:
            if self.average is not None:
                self.average.restore(average)
            if self._scaler_state():
                self.fabric.strategy.precision.load_state_dict(json.loads(metadata["scale"]))
            self.adaptation.restore(metadata, self.device)
            self.unlogged = unstack({name: tensor.to(self.device, copy=True) for name, tensor in unlogged.items()})
            self.seconds_before, step = float(metadata["seconds"]), int(metadata["step"])
        except (KeyError, ValueError, IndexError, TypeError) as error:
            raise UserError(f"{self.run.checkpoint} is not a checkpoint of this run: it is not complete.") from error
        if not 0 <= step <= self.length.total or not 0 <= self.seconds_before < math.inf:
            raise UserError(
                f"{self.run.checkpoint} is damaged: step {step} is not one of the run's {self.length.total}."
            )
        return step

    def _averaged(self) -> AbstractContextManager[None]:
        """The average of the weights in their place, if the run has one."""
        return self.average.applied() if self.average is not None else nullcontext()

    def _seconds(self) -> float:
        """Time spent on this run so far, over all the times it was resumed."""
        return round(self.seconds_before + time.monotonic() - self.clock, 2)

    def _finish(self) -> None:
        if not (self.best is not None and self.best.load(self.model)) and self.average is not None:
            self.average.apply()
        waited = {"seconds_waited": round(self.images.waited, 2)} if self.config.scale else {}
        info = {**self.run.info, "finished": now(), "seconds": self._seconds(), **waited}
        write_json(self.run.path / "run.json", info)
        if len(self.data.validation) and self.config.calibrate != "none" and not seen_by_init(self.run):
            on = None if self.config.calibrate == "auto" else self.config.calibrate
            name = hide_folder_path(self.config.data)
            fitted = fit_calibrator(self.model, self.method, self.data.validation, data=name, on=on, device=self.device)
            write_calibrator(self.run.path, fitted)
        save_weights(self.run.weights, self.model)
        remove_leftovers(self.run)


def _average(parts: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    """The mean of each number over the parts of a batch."""
    return {name: torch.stack([each[name] for each in parts]).mean() for name in parts[0]}


def remove_leftovers(run: Run) -> None:
    """Remove what a finished run does not need, and partial files of processes that were killed."""
    partial_files = (run.path / f".{name}.partial" for name in WRITTEN)
    for leftover in (run.checkpoint, run.path / "best.safetensors", *partial_files):
        leftover.unlink(missing_ok=True)
