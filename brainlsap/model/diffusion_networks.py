"""GraphHeat and ADC, by our own layers on the heat core.

PyTorch Geometric's `HeatConv` is another method of a similar name.
"""

import itertools
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from brainlsap.model.dropout import drop
from brainlsap.model.graph_scans import GraphScans
from brainlsap.model.inputs import spectra_of
from brainlsap.model.layers import Readout

# One layer then already reaches the neighbours, and its slope is far from vanishing.
_FIRST_RADIUS = 1.0


class GraphHeatConvolution(nn.Module):
    r"""One layer of GraphHeat (Xu et al. 2019): own signal, and signal diffused.

    .. math:: Z = H W_0 + e^{-sL} H W_1 + b

    with one fixed scale s for all regions.

    Parameters
    ----------
    n_channels, n_units : int
        Channels of the input and of the output.

    Examples
    --------
    >>> layer = GraphHeatConvolution(2, 5)
    >>> layer(torch.ones(4, 3, 2), torch.eye(3)[None]).shape
    torch.Size([4, 3, 5])
    """

    def __init__(self, n_channels: int, n_units: int) -> None:
        super().__init__()
        self.own = nn.Linear(n_channels, n_units)
        self.diffused = nn.Linear(n_channels, n_units, bias=False)

    def forward(self, H: Tensor, kernel: Tensor) -> Tensor:
        """Return `(n_items, n_rois, n_units)` of `(n_items, n_rois, n_channels)`."""
        return self.own(H) + self.diffused(torch.matmul(kernel, H))


class AdaptiveDiffusion(nn.Module):
    r"""One layer of ADC (Zhao et al. 2021): a learned radius for every channel.

    .. math:: Z_{:, f} = e^{-t_f L} H_{:, f}, \qquad H' = Z W + b

    Parameters
    ----------
    n_channels, n_units : int
        Channels of the input, each with a radius; channels of the output.

    Examples
    --------
    >>> layer = AdaptiveDiffusion(2, 5)
    >>> values, vectors = torch.zeros(1, 3), torch.eye(3)[None]
    >>> layer(torch.ones(4, 3, 2), values, vectors).shape, layer.radius().tolist()
    (torch.Size([4, 3, 5]), [1.0, 1.0])
    """

    def __init__(self, n_channels: int, n_units: int) -> None:
        super().__init__()
        self.raw_radius = nn.Parameter(torch.full((n_channels,), _FIRST_RADIUS))
        self.mix = nn.Linear(n_channels, n_units)

    def radius(self) -> Tensor:
        """Return the radius of every channel, not negative; shape (n_channels,)."""
        return self.raw_radius.abs()

    def forward(self, H: Tensor, eigenvalues: Tensor, eigenvectors: Tensor) -> Tensor:
        """Return `(n_items, n_rois, n_units)` of `(n_items, n_rois, n_channels)`."""
        response = torch.exp(-eigenvalues[..., None] * self.radius())
        Z = torch.matmul(eigenvectors, response * torch.matmul(eigenvectors.mT, H))
        return self.mix(Z)


class DiffusionNetwork(nn.Module):
    """Layers of GraphHeat or ADC, then the read-out that all networks share.

    Parameters
    ----------
    layer : {GraphHeatConvolution, AdaptiveDiffusion}
        Class of the layers.
    n_channels, n_classes : int
    settings : object
        With `n_layers`, `hidden_units` and `dropout`.
    measured : bool Tensor of shape (n_rois,)
    """

    measured: Tensor

    def __init__(
        self,
        layer: Any,
        n_channels: int,
        n_classes: int,
        settings: Any,
        measured: Tensor,
    ) -> None:
        super().__init__()
        widths = [n_channels] + [settings.hidden_units] * settings.n_layers
        self.layers = nn.ModuleList(layer(a, b) for a, b in itertools.pairwise(widths))
        n_inputs = int(measured.sum()) * widths[-1]
        self.readout = Readout(
            n_inputs, settings.hidden_units, n_classes, settings.dropout
        )
        self.dropout = settings.dropout
        self.register_buffer("measured", measured)

    def forward(self, scans: GraphScans) -> Tensor:
        """Return logits of shape `(n_items, n_classes)`."""
        H = scans.signal
        for number, layer in enumerate(self.layers):
            H = drop(H, self.dropout if number else 0.0, self.training)
            H = torch.relu(layer(H, *scans.graphs))
        return self.readout(H[:, self.measured].flatten(1))


def make_graph_heat(
    n_channels: int, n_classes: int, settings: Any, measured: Tensor
) -> DiffusionNetwork:
    """Return GraphHeat."""
    return DiffusionNetwork(
        GraphHeatConvolution, n_channels, n_classes, settings, measured
    )


def make_adc(
    n_channels: int, n_classes: int, settings: Any, measured: Tensor
) -> DiffusionNetwork:
    """Return ADC."""
    return DiffusionNetwork(
        AdaptiveDiffusion, n_channels, n_classes, settings, measured
    )


def spectra(W: np.ndarray) -> tuple[Tensor, ...]:
    """Return eigenvalues and eigenvectors of every graph's normalised Laplacian."""
    spectrum, graph_of = spectra_of(W)
    rows = torch.from_numpy(graph_of)
    return spectrum.eigenvalues[rows], spectrum.eigenvectors[rows]


def heat_kernels(W: np.ndarray, scale: float) -> tuple[Tensor, ...]:
    """Return the heat kernel of every graph at one scale for all regions."""
    eigenvalues, eigenvectors = spectra(W)
    response = torch.exp(-scale * eigenvalues)[:, None]
    return ((eigenvectors * response) @ eigenvectors.mT,)
