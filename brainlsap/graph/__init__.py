"""Connectomes become Laplacians, and features diffuse over them by heat kernels."""

from brainlsap.graph.connectomes import (
    LearnedPreparation,
    Preparation,
    connectome_summary,
    covariance_connectome,
    mean_connectome,
    prepare_connectomes,
)
from brainlsap.graph.heat import diffuse, exact_heat_kernel, heat_kernel
from brainlsap.graph.kernels import (
    EXPANSIONS,
    KERNELS,
    choose_degree,
    error_bound,
    largest_scale,
    polynomial_values,
)
from brainlsap.graph.laplacian import (
    Spectrum,
    SpectrumCache,
    decompose,
    normalized_laplacian,
)
from brainlsap.graph.recurrence import diffuse_recurrence
from brainlsap.graph.spectral import SpectralEngine

__all__ = [
    "EXPANSIONS",
    "KERNELS",
    "LearnedPreparation",
    "Preparation",
    "SpectralEngine",
    "Spectrum",
    "SpectrumCache",
    "choose_degree",
    "connectome_summary",
    "covariance_connectome",
    "decompose",
    "diffuse",
    "diffuse_recurrence",
    "error_bound",
    "exact_heat_kernel",
    "heat_kernel",
    "largest_scale",
    "mean_connectome",
    "normalized_laplacian",
    "polynomial_values",
    "prepare_connectomes",
]
