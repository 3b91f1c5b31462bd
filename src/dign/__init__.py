"""Train image classifiers that stay accurate and calibrated under noise and other corruptions.

Everything a program needs is here: methods, corruptions, evaluation, metrics, data, trained models, runs and reports.

>>> import dign
>>> dign.DiGN(sigma_max=0.1).samples
3

A name is loaded when it is first used: `import dign` alone is instant and does not load torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from dign.core.version import __version__ as __version__

if TYPE_CHECKING:  # what editors and type checkers read; tests/project/test_public_api.py holds it equal to _PUBLIC
    from dign import (
        augment,
        certification,
        corruptions,
        data,
        evaluation,
        landscape,
        methods,
        metrics,
        models,
        publish,
        report,
        runs,
        training,
    )
    from dign.certification.smoothing import Certificates, Smoothed, certify, smoothed
    from dign.core.errors import UserError
    from dign.corruptions.engine import corrupt
    from dign.data.loading import load as load_data
    from dign.data.sources.arrays import from_arrays
    from dign.evaluation.attack import Attack, AttackResult, robust_accuracy
    from dign.evaluation.conditions import Conditions
    from dign.evaluation.evaluate import evaluate
    from dign.evaluation.outliers import OutlierResult, detect_outliers
    from dign.evaluation.results import Results
    from dign.methods.afa import AFA
    from dign.methods.apr import APR
    from dign.methods.at import AT
    from dign.methods.augmax import AugMax
    from dign.methods.augmix import AugMix
    from dign.methods.autoaugment import AutoAugment
    from dign.methods.base import Method
    from dign.methods.consistency import Consistency
    from dign.methods.cure import CURE
    from dign.methods.cutmix import CutMix
    from dign.methods.cutout import Cutout
    from dign.methods.deepaugment import DeepAugment
    from dign.methods.dign import DiGN
    from dign.methods.dign_without_cr import DiGNWithoutCR
    from dign.methods.factory import make_method
    from dign.methods.fwat import FWAT
    from dign.methods.gradient_regularization import GradientRegularization
    from dign.methods.hybrid_augment import HybridAugment
    from dign.methods.llr import LLR
    from dign.methods.mixup import MixUp
    from dign.methods.noisy_features import NoisyFeatures
    from dign.methods.noisymix import NoisyMix
    from dign.methods.patch_gaussian import PatchGaussian
    from dign.methods.prime import PRIME
    from dign.methods.rse import RSE
    from dign.methods.standard import Standard
    from dign.methods.trades import TRADES
    from dign.methods.trivial_augment import TrivialAugment
    from dign.metrics.accuracies import Accuracy, accuracy
    from dign.metrics.aggregation import mean_corruption_accuracy, noise_corruption_accuracy
    from dign.metrics.calibration_bins import Calibration, calibration
    from dign.metrics.confusions import Confusion, confusion
    from dign.metrics.temperature import Temperature, apply_temperature, fit_temperature
    from dign.models.normalize import Normalized
    from dign.report import plot
    from dign.report.make import make_report
    from dign.runs.classifier import Classifier, load_model
    from dign.runs.config import RunConfig
    from dign.runs.ensemble import Ensemble
    from dign.runs.foreign.opening import open_model
    from dign.runs.predict import predict
    from dign.training.train import resume, train

_PUBLIC = {
    "AFA": "dign.methods.afa",
    "APR": "dign.methods.apr",
    "AT": "dign.methods.at",
    "Accuracy": "dign.metrics.accuracies",
    "Attack": "dign.evaluation.attack",
    "AttackResult": "dign.evaluation.attack",
    "AugMax": "dign.methods.augmax",
    "AugMix": "dign.methods.augmix",
    "AutoAugment": "dign.methods.autoaugment",
    "CURE": "dign.methods.cure",
    "Calibration": "dign.metrics.calibration_bins",
    "Certificates": "dign.certification.smoothing",
    "Classifier": "dign.runs.classifier",
    "Conditions": "dign.evaluation.conditions",
    "Confusion": "dign.metrics.confusions",
    "Consistency": "dign.methods.consistency",
    "CutMix": "dign.methods.cutmix",
    "Cutout": "dign.methods.cutout",
    "DeepAugment": "dign.methods.deepaugment",
    "DiGN": "dign.methods.dign",
    "DiGNWithoutCR": "dign.methods.dign_without_cr",
    "Ensemble": "dign.runs.ensemble",
    "FWAT": "dign.methods.fwat",
    "GradientRegularization": "dign.methods.gradient_regularization",
    "HybridAugment": "dign.methods.hybrid_augment",
    "LLR": "dign.methods.llr",
    "Method": "dign.methods.base",
    "MixUp": "dign.methods.mixup",
    "NoisyFeatures": "dign.methods.noisy_features",
    "NoisyMix": "dign.methods.noisymix",
    "Normalized": "dign.models.normalize",
    "OutlierResult": "dign.evaluation.outliers",
    "PRIME": "dign.methods.prime",
    "PatchGaussian": "dign.methods.patch_gaussian",
    "RSE": "dign.methods.rse",
    "Results": "dign.evaluation.results",
    "RunConfig": "dign.runs.config",
    "Smoothed": "dign.certification.smoothing",
    "Standard": "dign.methods.standard",
    "TRADES": "dign.methods.trades",
    "Temperature": "dign.metrics.temperature",
    "TrivialAugment": "dign.methods.trivial_augment",
    "UserError": "dign.core.errors",
    "accuracy": "dign.metrics.accuracies",
    "apply_temperature": "dign.metrics.temperature",
    "calibration": "dign.metrics.calibration_bins",
    "certify": "dign.certification.smoothing",
    "confusion": "dign.metrics.confusions",
    "corrupt": "dign.corruptions.engine",
    "detect_outliers": "dign.evaluation.outliers",
    "evaluate": "dign.evaluation.evaluate",
    "fit_temperature": "dign.metrics.temperature",
    "from_arrays": "dign.data.sources.arrays",
    "load_data": "dign.data.loading:load",
    "load_model": "dign.runs.classifier",
    "make_method": "dign.methods.factory",
    "make_report": "dign.report.make",
    "mean_corruption_accuracy": "dign.metrics.aggregation",
    "noise_corruption_accuracy": "dign.metrics.aggregation",
    "open_model": "dign.runs.foreign.opening",
    "plot": "dign.report.plot:",
    "predict": "dign.runs.predict",
    "resume": "dign.training.train",
    "robust_accuracy": "dign.evaluation.attack",
    "smoothed": "dign.certification.smoothing",
    "train": "dign.training.train",
}
"""Public name to the module that defines it; `module:name` where its name there is another, `module:` for a module."""

__all__ = [
    "AFA", "APR", "AT", "Accuracy", "Attack", "AttackResult", "AugMax", "AugMix", "AutoAugment", "CURE", "Calibration",
    "Certificates", "Classifier", "Conditions", "Confusion", "Consistency", "CutMix", "Cutout", "DeepAugment", "DiGN",
    "DiGNWithoutCR", "Ensemble", "FWAT", "GradientRegularization", "HybridAugment", "LLR", "Method", "MixUp",
    "NoisyFeatures", "NoisyMix", "Normalized", "OutlierResult", "PRIME", "PatchGaussian", "RSE", "Results", "RunConfig",
    "Smoothed", "Standard", "TRADES", "Temperature", "TrivialAugment", "UserError", "accuracy", "apply_temperature",
    "calibration", "certify", "confusion", "corrupt", "detect_outliers", "evaluate", "fit_temperature", "from_arrays",
    "load_data", "load_model", "make_method", "make_report", "mean_corruption_accuracy", "noise_corruption_accuracy",
    "open_model", "plot", "predict", "resume", "robust_accuracy", "smoothed", "train", "augment", "certification",
    "corruptions", "data", "evaluation", "landscape", "methods", "metrics", "models", "publish", "report", "runs",
    "training", "__version__",
]  # fmt: skip

if not TYPE_CHECKING:  # else a type checker would accept any misspelled name

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module 'dign' has no attribute {name!r}")
        if name not in _PUBLIC:
            return import_module(f"dign.{name}")
        place, colon, attribute = _PUBLIC[name].partition(":")
        module = import_module(place)
        value = globals()[name] = module if colon and not attribute else getattr(module, attribute or name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
