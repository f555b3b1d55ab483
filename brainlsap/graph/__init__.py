"""Connectomes become Laplacians, and features diffuse over them by heat kernels.

What classifiers of many small graphs use stands in `spectral` (the spectral engine) and
`laplacian` (spectra and their cache).
"""

from brainlsap.graph.kernels import (
    EXPANSIONS,
    KERNELS,
    choose_degree,
    diffuse,
    diffuse_recurrence,
    error_bound,
    exact_heat_kernel,
    heat_kernel,
    kernel_title,
    largest_scale,
    polynomial_values,
)
from brainlsap.graph.laplacian import (
    Preparation,
    covariance_connectome,
    decompose,
    normalized_laplacian,
)

__all__ = [
    "EXPANSIONS",
    "KERNELS",
    "Preparation",
    "choose_degree",
    "covariance_connectome",
    "decompose",
    "diffuse",
    "diffuse_recurrence",
    "error_bound",
    "exact_heat_kernel",
    "heat_kernel",
    "kernel_title",
    "largest_scale",
    "normalized_laplacian",
    "polynomial_values",
]
