"""Training methods: each turns a model and a batch into a loss.

>>> from dign.methods import DiGN
>>> DiGN(sigma_max=0.2, weight=0.2, samples=3)  # doctest: +ELLIPSIS
DiGN(...)
"""

from dign.methods.afa import AFA
from dign.methods.apr import APR
from dign.methods.at import AT
from dign.methods.augmax import AugMax
from dign.methods.augmix import AugMix
from dign.methods.autoaugment import AutoAugment
from dign.methods.base import Augmentation, Method, Sum
from dign.methods.consistency import Consistency
from dign.methods.cure import CURE
from dign.methods.cutmix import CutMix
from dign.methods.cutout import Cutout
from dign.methods.deepaugment import DeepAugment
from dign.methods.dign import DiGN
from dign.methods.dign_without_cr import DiGNWithoutCR
from dign.methods.fwat import FWAT
from dign.methods.gradient_regularization import GradientRegularization
from dign.methods.hybrid_augment import HybridAugment
from dign.methods.labels import MixedLabels
from dign.methods.llr import LLR
from dign.methods.mixup import MixUp
from dign.methods.noisy_features import NoisyFeatures
from dign.methods.noisymix import NoisyMix
from dign.methods.outcome import Outcome
from dign.methods.passes import Cost
from dign.methods.patch_gaussian import PatchGaussian
from dign.methods.prime import PRIME
from dign.methods.rse import RSE
from dign.methods.standard import Standard
from dign.methods.trades import TRADES
from dign.methods.trivial_augment import TrivialAugment

METHODS: dict[str, type[Method]] = {
    method.key: method
    for method in (
        Standard,
        AT,
        TRADES,
        RSE,
        DeepAugment,
        AugMix,
        AugMax,
        DiGNWithoutCR,
        DiGN,
        Consistency,
        Cutout,
        MixUp,
        CutMix,
        AutoAugment,
        TrivialAugment,
        PatchGaussian,
        PRIME,
        APR,
        HybridAugment,
        AFA,
        GradientRegularization,
        CURE,
        LLR,
        FWAT,
        NoisyFeatures,
        NoisyMix,
    )
}
"""All methods by name: those of the paper's tables in their order, then the others."""

__all__ = [
    "AFA", "APR", "AT", "AugMax", "Augmentation", "AugMix", "AutoAugment", "Consistency", "Cost", "CURE", "CutMix",
    "Cutout", "DeepAugment", "DiGN", "DiGNWithoutCR", "FWAT", "GradientRegularization", "HybridAugment", "LLR",
    "Method", "METHODS", "MixedLabels", "MixUp", "NoisyFeatures", "NoisyMix", "Outcome", "PatchGaussian", "PRIME",
    "RSE", "Standard", "Sum", "TRADES", "TrivialAugment",
]  # fmt: skip
