"""Room 2: connectomes become Laplacians and heat kernels."""

from brainlsap.graph.bounds import (
    KERNELS,
    choose_degree,
    error_bound,
    largest_scale,
    polynomial_values,
)
from brainlsap.graph.expansions import EXPANSIONS
from brainlsap.graph.group_networks import (
    connectome_summary,
    covariance_connectome,
    mean_connectome,
)
from brainlsap.graph.heat import ENGINES, diffuse, exact_heat_kernel, heat_kernel
from brainlsap.graph.laplacian import (
    Spectrum,
    decompose,
    normalized_laplacian,
)
from brainlsap.graph.preparation import LearnedPreparation, prepare_connectomes
from brainlsap.graph.preparation_options import Preparation
from brainlsap.graph.recurrence import diffuse_recurrence
from brainlsap.graph.spectral import SpectralEngine
from brainlsap.graph.spectrum_cache import SpectrumCache

__all__ = [
    "ENGINES",
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
