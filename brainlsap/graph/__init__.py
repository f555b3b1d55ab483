"""Room 2: connectomes become Laplacians and heat kernels."""

from brainlsap.graph.bounds import (
    KERNELS,
    choose_degree,
    error_bound,
    largest_scale,
    polynomial_values,
)
from brainlsap.graph.expansions import EXPANSIONS
from brainlsap.graph.heat import ENGINES, diffuse, exact_heat_kernel, heat_kernel
from brainlsap.graph.laplacian import (
    Spectrum,
    SpectrumCache,
    decompose,
    normalized_laplacian,
    prepare_connectomes,
)
from brainlsap.graph.recurrence import diffuse_recurrence
from brainlsap.graph.spectral import SpectralEngine

__all__ = [
    "ENGINES",
    "EXPANSIONS",
    "KERNELS",
    "SpectralEngine",
    "Spectrum",
    "SpectrumCache",
    "choose_degree",
    "decompose",
    "diffuse",
    "diffuse_recurrence",
    "error_bound",
    "exact_heat_kernel",
    "heat_kernel",
    "largest_scale",
    "normalized_laplacian",
    "polynomial_values",
    "prepare_connectomes",
]
