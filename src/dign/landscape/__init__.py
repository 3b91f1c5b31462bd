"""The loss around an image: gradients, curvature, the Fisher matrix of the input, and the paper's bounds.

Every function takes a model and a batch, gives one value per image, runs the model in eval mode and leaves it, the
batch and the global random state as they were.
"""

from dign.core.derivatives import Hessian
from dign.landscape.bounds import log_norm_tail_bound, log_stability_bound, loss_difference_bound
from dign.landscape.curvature import (
    Estimate,
    hessian,
    hessian_traces,
    hessian_vector_product,
    squared_curvature_by_differences,
)
from dign.landscape.fisher import (
    diverse_noise_divergence,
    fisher,
    fisher_trace,
    noise_divergence,
    sampled_fisher_trace,
)
from dign.landscape.gradients import gradient_norms, image_losses, input_gradients
from dign.landscape.lanczos import Extremes, largest_eigenvalue

__all__ = [
    "Estimate",
    "Extremes",
    "Hessian",
    "diverse_noise_divergence",
    "fisher",
    "fisher_trace",
    "gradient_norms",
    "hessian",
    "hessian_traces",
    "hessian_vector_product",
    "image_losses",
    "input_gradients",
    "largest_eigenvalue",
    "log_norm_tail_bound",
    "log_stability_bound",
    "loss_difference_bound",
    "noise_divergence",
    "sampled_fisher_trace",
    "squared_curvature_by_differences",
]
