"""What a run is: a checked dataclass whose fields are the keys of a TOML file and the options of the command line.

Nothing here imports torch, so that the command line's help is immediate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from typing import Any, get_type_hints

from dign.core.catalog import METHODS
from dign.core.checks import check_value, coerce
from dign.core.errors import UserError, unknown_name
from dign.core.files import is_encodable
from dign.data.names import PICTURE_PREFIXES
from dign.runs.hub_config import HUB_PREFIX, hub_folder, is_hub_folder, read_hub_config
from dign.runs.presets import FINE_TUNING, FINE_TUNING_RATE, PRESETS, SCALED_PRESETS, choose_preset
from dign.runs.toml_files import format_toml, read_toml

PRECISIONS = ("32", "bf16", "16")
"""In which a network computes: float32, mixed bfloat16, mixed float16."""


def setting(
    default: Any,
    group: str,
    help: str,
    *,
    choices: tuple[str, ...] | None = None,
    least: float | None = None,
    short: tuple[str, ...] = (),
) -> Any:
    """A field of a configuration, with its help, its choices, its minimum and shorter names of its option."""
    about = {"group": group, "help": help, "choices": choices, "least": least, "short": short}
    return field(default=default, metadata=about)


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """The settings of one training run; the defaults are the published recipe (preset "paper").

    Fields are checked when they are set: a wrong type, an unknown choice or a number out of range is a `UserError`
    that names the field. `from_mapping` also expands a preset; use it for anything but the published recipe.

    Args:
        data: A data set's name (digits, cifar10, cifar100, tiny-imagenet), or folder:PATH.
        method: A training method, or a sum of methods such as "dign+augmix".
        model: An architecture, timm:NAME, torchvision:NAME, or hub:DIR.
        settings: Settings of the methods by name, for example `{"dign": {"sigma_max": 0.1}}`.

    `dign train --help` describes the other fields, which have the names of its options.

    Raises:
        UserError: A value is invalid.

    Example:
        >>> RunConfig(data="cifar10", epochs=30).lr
        0.1
        >>> RunConfig.from_mapping({"data": "cifar10", "preset": "fast", "seed": 1}).epochs
        6
    """

    data: str = setting(
        MISSING, "What", "digits, cifar10, cifar100, tiny-imagenet, folder:PATH, wds:PATTERN, or hf:PATH"
    )
    method: str = setting("dign", "What", "training method, or a sum of them such as dign+augmix")
    model: str = setting(
        "resnet18", "What", "architecture: see `dign list models`; timm:NAME, torchvision:NAME; hub:DIR"
    )
    seed: int = setting(0, "What", "seed of everything random in the run", least=0)

    init: str = setting("", "Fine-tuning", "weights to start from: .safetensors, .pth, run, hub folder, or pretrained")
    freeze: str = setting("", "Fine-tuning", "parts of init that are not trained: body, or names as in stem,layer?")
    freeze_norms: bool = setting(False, "Fine-tuning", "batch norms keep the statistics of init")
    head_lr: float = setting(1.0, "Fine-tuning", "learning rate of the head, as a multiple of lr", least=0)

    size: int = setting(0, "Data", "resize images to SIZE x SIZE (0: as they are)", least=0)
    validation: float = setting(0.1, "Data", "fraction of the training images held out for validation", least=0)
    validation_seed: int = setting(0, "Data", "seed of that split: the same for runs to be compared", least=0)

    skip_unreadable: bool = setting(
        False, "Data", "leave out pictures that cannot be read, and say how many", short=("skip_bad",)
    )

    fit: str = setting(
        "crop",
        "Photographs",
        "how a picture becomes a square: cut out of it, padded with gray to one, or squashed",
        choices=("crop", "pad", "squash"),
    )
    scale: float = setting(
        0.0, "Photographs", "train on random resized crops of at least this share of a picture (0: none)", least=0
    )
    ratio: float = setting(1.3333, "Photographs", "largest ratio of the sides of those crops", least=1)
    crop_fraction: float = setting(
        1.0, "Photographs", "evaluate on the middle: this share of the shorter side (1: the largest square)", least=0.1
    )
    interpolation: str = setting("bicubic", "Photographs", "how pictures are resized", choices=("bicubic", "bilinear"))
    cache: str = setting(
        "auto",
        "Photographs",
        "keep decoded images: auto, where they take at most a quarter of the free disk",
        choices=("auto", "on", "off"),
    )
    workers: int = setting(-1, "Photographs", "processes that decode pictures (-1: as the cores allow)", least=-1)

    epochs: int = setting(150, "Optimization", "passes over the training images (0: as their number asks for)", least=0)
    batch_size: int = setting(512, "Optimization", "images per step; a last partial batch is dropped", least=1)
    optimizer: str = setting(
        "sgd",
        "Optimization",
        "SGD with momentum, or orthogonalized momentum for the convolutions: fewer, larger steps",
        choices=("sgd", "orthogonal"),
    )
    lr: float = setting(
        0.1,
        "Optimization",
        "peak learning rate; with init a tenth of the preset's, or what was measured; less for smaller batches",
        least=0,
    )
    momentum: float = setting(0.9, "Optimization", "Nesterov momentum", least=0)
    weight_decay: float = setting(5e-4, "Optimization", "weight decay", least=0)
    schedule: str = setting(
        "step",
        "Optimization",
        "learning rate over time: x0.1 at each third of the epochs, half a cosine, or up and down linearly",
        choices=("step", "cosine", "one-cycle", "constant"),
    )
    warmup: float = setting(0.2, "Optimization", "fraction of training that one-cycle spends going up", least=0)
    balance: bool = setting(
        False, "Optimization", "draw every class equally often, and choose by balanced accuracy: for unequal classes"
    )
    small_first: float = setting(
        0.0, "Optimization", "fraction of training, from its start, on images of 3/4 the side: half the work", least=0
    )
    clip: float = setting(
        0.0, "Optimization", "largest norm of a step's gradient, beyond which it is scaled (0: none)", least=0
    )
    ema: float = setting(
        0.0, "Optimization", "keep a moving average of the weights with this decay, e.g. 0.999 (0: none)", least=0
    )
    accumulate: int = setting(
        1, "Optimization", "parts in which a batch passes through the model, one after the other: less memory", least=1
    )
    label_smoothing: float = setting(0.0, "Optimization", "label smoothing of every cross-entropy", least=0)

    crop: int = setting(4, "Augmentation", "random crop out of this much zero padding, in pixels (0: none)", least=0)
    flip: bool = setting(True, "Augmentation", "horizontal flips of every second image")
    alternate: bool = setting(False, "Augmentation", "flip every image in every second epoch, not at random")
    jitter: float = setting(0.25, "Augmentation", "strength of brightness, contrast and saturation jitter", least=0)
    rotation: float = setting(2.0, "Augmentation", "largest random rotation, in degrees", least=0)

    keep: str = setting(
        "last",
        "Outcome",
        "weights that the run ends with: the last, or the best on validation",
        choices=("last", "best"),
    )
    calibrate: str = setting(
        "auto",
        "Outcome",
        "validation images that a temperature is fitted on: clean, under the method's noise, both; auto: as measured",
        choices=("auto", "clean", "noise", "both", "none"),
    )
    validate_every: int = setting(5, "Outcome", "epochs between validations (0: only at the end)", least=0)
    checkpoint_seconds: float = setting(60.0, "Outcome", "seconds between checkpoints", least=0)

    track: str = setting(
        "auto",
        "Outcome",
        "experiment tracker, offline unless told otherwise; auto: TensorBoard where it is installed",
        choices=("auto", "none", "tensorboard", "mlflow", "wandb"),
    )

    device: str = setting("auto", "Machine", "auto, cpu, cuda, cuda:1, ..., mps")
    precision: str = setting(
        "auto",
        "Machine",
        "float32, mixed bfloat16, or mixed float16 with a gradient scaler; auto: bf16 on a GPU that has it",
        choices=("auto", *PRECISIONS),
    )
    devices: int = setting(1, "Machine", "processes on this machine (GPUs or CPUs) that share each batch", least=1)
    nodes: int = setting(1, "Machine", "machines that share each batch, devices on each", least=1)
    data_memory: float = setting(
        0.33, "Machine", "share of the device's memory for the images; else they are copied batch by batch", least=0
    )
    patience: float = setting(
        1800.0, "Machine", "with several processes: seconds to wait for one that does not answer", least=1
    )
    sync_batch_norm: bool = setting(False, "Machine", "with several processes: batch norm over the whole batch")
    compile: bool = setting(False, "Machine", "compile the whole step with torch.compile")
    channels_last: bool = setting(True, "Machine", "channels-last memory layout")
    winograd: bool = setting(True, "Machine", "3x3 convolutions on a CPU by Winograd's algorithm: fewer products")

    settings: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Settings of the methods by name, as in `[settings.dign]`; checked by the methods themselves."""

    def __post_init__(self) -> None:
        hints = get_type_hints(RunConfig)
        for spec in fields(self):
            if spec.name == "settings":
                continue
            value = coerce(getattr(self, spec.name), hints[spec.name], spec.name)
            object.__setattr__(self, spec.name, value)
            check_value(spec.name, value, spec.metadata["choices"], spec.metadata["least"])
            if isinstance(value, int) and abs(value) >= 2**63:
                raise UserError(f"{spec.name} must be below 2^63, not {value}.")
            if isinstance(value, str) and not is_encodable(value):
                raise UserError(f"{spec.name} {value!a} is not valid UTF-8: rename that file or folder.")
        if self.data_memory > 1:
            raise UserError(f"data_memory is a share of the device's memory, at most 1, not {self.data_memory:g}.")
        if self.crop_fraction > 1 or self.scale > 1 or self.ratio > 100:
            raise UserError("crop_fraction and scale must be at most 1, ratio at most 100.")
        if self.scale and not self.size:
            raise UserError("scale needs a size that the crops are resized to: set size, for example 160.")
        if self.scale and not self.data.startswith(PICTURE_PREFIXES):
            raise UserError(
                f"scale cuts random crops out of photographs in files, and {self.data} has none: set scale to 0, and "
                "crop to the pixels of padding that crops are cut out of."
            )
        if (self.freeze or self.freeze_norms) and not self.init:
            name = "freeze" if self.freeze else "freeze_norms"
            raise UserError(f"{name} needs weights to keep: set init as well.")
        if self.validation >= 1:
            raise UserError(f"validation must be a fraction below 1, not {self.validation}.")
        if self.ema >= 1:
            raise UserError(f"ema must be a decay below 1, not {self.ema}: 0.999 averages about a thousand steps.")
        if not 0 <= self.label_smoothing < 1 or self.momentum >= 1 or self.warmup > 1 or self.small_first > 1:
            raise UserError("label_smoothing and momentum must be below 1, warmup and small_first at most 1.")

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> RunConfig:
        """Make a configuration from settings by name, as in a TOML file.

        Args:
            values: Fields of `RunConfig`, and optionally `preset`, whose values apply where `values` has none.
                Without one the preset is "digits" for the digits, "photos" for a folder of images with a `size` of 96
                pixels or more, and "paper" for everything else.

        Returns:
            The checked configuration.

        Raises:
            UserError: A name is unknown, a value is invalid, or `data` is missing.

        Example:
            >>> RunConfig.from_mapping({"data": "digits", "method": "augmix"}).model
            'tinynet'
        """
        values = dict(values)
        preset = values.pop("preset", choose_preset(values))
        if not isinstance(preset, str) or preset not in PRESETS:
            raise unknown_name("preset", preset, PRESETS)
        known = [spec.name for spec in fields(cls)]
        for key in values:
            if key in METHODS:
                raise UserError(f"Settings of {key} belong under [settings.{key}], not under [{key}].")
            if key not in known:
                raise unknown_name("setting", key, [*known, "preset"])
        if "data" not in values:
            raise UserError("data is missing: name a data set (cifar10, digits, ...) or folder:PATH.")
        values = _fill_in_model(values)
        defaults = dict(PRESETS[preset])
        if values.get("init"):
            defaults["lr"] = round(defaults.get("lr", cls.lr) * FINE_TUNING_RATE, 12)
            defaults |= FINE_TUNING.get(preset, {})
            defaults |= _framing_of_weights({**defaults, **values}, values)
        elif preset in SCALED_PRESETS:  # trained weights get small steps as it is
            defaults["lr"] = _scale_rate(defaults, values)
        settings = _merge_settings(_preset_settings(defaults, values), values.get("settings", {}))
        return cls(**{**defaults, **values, "settings": settings})

    def to_toml(self) -> str:
        """The resolved configuration as TOML, which `read_toml` and `from_mapping` read back."""
        values = asdict(self)
        tables = values.pop("settings")
        lines = [f"{key} = {format_toml(value)}" for key, value in values.items()]
        for name, table in tables.items():
            lines += ["", f"[settings.{format_toml(name)}]"]
            lines += [f"{key} = {format_toml(value)}" for key, value in table.items() if value is not None]
        return "\n".join(lines) + "\n"


def _scale_rate(defaults: Mapping[str, Any], given: Mapping[str, Any]) -> float:
    """The learning rate of a preset, smaller in proportion where batches are smaller than the preset's.

    With SGD a step of the full rate on fewer images is too large: photographs of 160 pixels in batches of 32 diverge at
    the 0.05 of "laptop" (docs/train.md).
    """
    rate = float(defaults.get("lr", RunConfig.lr))
    usual, chosen = defaults.get("batch_size", RunConfig.batch_size), given.get("batch_size")
    optimizer = given.get("optimizer", defaults.get("optimizer", RunConfig.optimizer))
    if type(chosen) is not int or not 0 < chosen < usual or optimizer != "sgd":
        return rate
    return round(rate * chosen / float(usual), 12)


def split_methods(names: str) -> list[str]:
    """The parts of a sum of methods.

    >>> split_methods("dign + augmix")
    ['dign', 'augmix']
    """
    return [name.strip() for name in names.split("+")]


def _preset_settings(preset: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What the preset sets of the methods in use: of another method it would be ignored."""
    used = split_methods(str(values.get("method", RunConfig.method)))
    return {name: table for name, table in preset.get("settings", {}).items() if name in used}


def _merge_settings(defaults: dict[str, dict[str, Any]], given: Any) -> Any:
    """Settings of the methods: `given` over `defaults`. What is not a table is refused later."""
    if not isinstance(given, dict):
        return given
    tables = {**defaults, **given}
    both = [name for name in defaults.keys() & given.keys() if isinstance(given[name], dict)]
    return {**tables, **{name: {**defaults[name], **given[name]} for name in both}}


def _framing_of_weights(settings: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """How photographs are cut and resized for evaluation, if the preset does it, as the weights were trained."""
    names = ("fit", "crop_fraction", "interpolation")
    if "scale" not in settings or all(name in given for name in names):
        return {}
    from dign.models import find_preprocessing

    known = find_preprocessing(str(settings.get("model", RunConfig.model)))
    return {name: getattr(known, name) for name in names if getattr(known, name) is not None}


def _fill_in_model(values: dict[str, Any]) -> dict[str, Any]:
    """`model = "hub:DIR"` means that folder's architecture with `init = DIR`; `init` alone implies its model too."""
    if str(values.get("model", "")).startswith(HUB_PREFIX):
        values = {"init": values["model"], **values}
        return {**values, "model": read_hub_config(hub_folder(values["model"]))["model"]}
    folder = hub_folder(values.get("init") or ".")
    if not values.get("init") or "model" in values or not folder.is_dir():
        return values
    if is_hub_folder(folder):
        return {**values, "model": read_hub_config(folder)["model"]}
    if (folder / "config.toml").is_file():
        return {**values, "model": read_toml(folder / "config.toml").get("model", RunConfig.model)}
    return values
