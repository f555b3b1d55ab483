"""Connectomes become Laplacians, and features diffuse over them by heat kernels."""

from brainlsap.graph.connectomes import Preparation, covariance_connectome
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
from brainlsap.graph.spectral import (
    ChebyshevSeries,
    SpectralEngine,
    chebyshev_terms,
    combine,
)

__all__ = [
    "EXPANSIONS",
    "KERNELS",
    "ChebyshevSeries",
    "Preparation",
    "SpectralEngine",
    "Spectrum",
    "SpectrumCache",
    "chebyshev_terms",
    "choose_degree",
    "combine",
    "covariance_connectome",
    "decompose",
    "diffuse",
    "diffuse_recurrence",
    "error_bound",
    "exact_heat_kernel",
    "heat_kernel",
    "largest_scale",
    "normalized_laplacian",
    "polynomial_values",
]
