"""How signals travel along a graph: heat with a scale for every region, and others'.

A network asks its batch to `propagate` a signal by one of its layers: heat by the
spectral engine (:class:`brainlsap.graph.spectral.GraphBatch`), everything else by
matrices kept of each graph (:class:`DenseGraphs`). A further baseline is one entry of
:data:`NETWORKS`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from brainlsap.graph import Preparation
from brainlsap.graph.laplacian import SpectrumCache
from brainlsap.model.settings import HeatSettings

# Folds, kernels and starts of one process see the same graphs again and again.
SPECTRA = SpectrumCache()

# Dense graphs that are gone through at once where no gradient is needed.
AT_ONCE = 256
# The released code pushes a scale up where it is below this (erratum 5).
_BARRIER = 0.01


class HeatScale(nn.Module):
    """The learnable scale of every region, kept where the kernel can be trusted.

    Parameters
    ----------
    n_rois : int
    initial_scale : float or array of shape (n_rois,)
        Where every scale starts, their mean where all share one; dimensionless.
    max_scale : float
        Largest scale that the kernel is trusted at.
    scale_mode : {"region", "global", "frozen"}
        One scale for each region, one for all, or the start for ever.
    """

    def __init__(
        self,
        n_rois: int,
        initial_scale: float | np.ndarray | Tensor,
        max_scale: float,
        scale_mode: str,
    ) -> None:
        super().__init__()
        self.n_rois, self.largest = n_rois, max_scale
        region_scales = torch.as_tensor(initial_scale, dtype=torch.float64).expand(
            n_rois
        )
        region_scales = (
            region_scales
            if scale_mode == "region"
            else region_scales.mean(0, keepdim=True)
        )
        self.raw_scale = nn.Parameter(region_scales.float(), scale_mode != "frozen")
        self.n_projected: int | Tensor = 0

    def forward(self) -> Tensor:
        """Return the scale of every region, shape `(n_rois,)`."""
        return self.raw_scale.expand(self.n_rois)

    @torch.no_grad()
    def step_(self, settings: HeatSettings) -> None:
        """Take one plain gradient step, clipped, and project onto the accurate range.

        A penalty adds the l1 term's slope, read literally, or as the released code's
        barrier.
        """
        raw_scale, scale_clip = self.raw_scale, settings.scale_clip
        if raw_scale.grad is None:
            return
        if settings.scale_penalty != "none":
            is_l1 = settings.scale_penalty == "l1"
            barrier_gradient = 1.0 if is_l1 else -1.0 * (raw_scale < _BARRIER)
            raw_scale.grad += settings.penalty_weight * barrier_gradient
        # clamp lets NaN through, and a kernel at a scale of NaN cannot be computed
        clean_gradient = torch.nan_to_num(raw_scale.grad, nan=0.0)
        raw_scale.sub_(
            (settings.scale_step * clean_gradient).clamp(-scale_clip, scale_clip)
        )
        # count scales above the limit, not those set to 0; stay on the device
        self.n_projected = self.n_projected + (raw_scale > self.largest).sum()
        raw_scale.clamp_(0.0, self.largest)


@dataclass(frozen=True, eq=False)
class DenseGraphs:
    """Scans for the other networks: signals, and matrices kept of each graph.

    Attributes
    ----------
    signal : Tensor of shape (n_items, n_rois, n_channels)
    graphs : tuple of Tensor
        Each of shape (n_items, ...), or (1, ...) where all scans share one graph.
    """

    signal: Tensor
    graphs: tuple[Tensor, ...]
    offset: ClassVar[None] = None

    def select(self, item_index: Tensor | slice) -> "DenseGraphs":
        """Return the batch of some items; a slice copies nothing."""
        selected_matrices = tuple(
            graph_matrix if len(graph_matrix) == 1 else graph_matrix[item_index]
            for graph_matrix in self.graphs
        )
        return DenseGraphs(self.signal[item_index], selected_matrices)

    def propagate(self, layer: nn.Module, H: Tensor | None = None) -> Tensor:
        """Return what a layer makes of the features, or of a signal H."""
        H = self.signal if H is None else H
        if torch.is_grad_enabled() or len(H) <= AT_ONCE:
            return layer(H, *self.graphs)
        item_slices = [slice(k, k + AT_ONCE) for k in range(0, len(H), AT_ONCE)]
        return torch.cat([layer(H[p], *self.select(p).graphs) for p in item_slices])


class MatrixProduct(nn.Module):
    r"""One smoothing matrix a graph: :math:`Z = S H` (GCN, GDC).

    With `adds_signal`, the signal is a second block of channels (GraphHeat, Xu et al.
    2019): with the linear map after it, :math:`H W_0 + e^{-sL} H W_1 + b` at one
    fixed s.
    """

    def __init__(self, n_channels: int, adds_signal: bool = False) -> None:
        super().__init__()
        self.adds_signal = adds_signal
        self.width = (1 + adds_signal) * n_channels

    def forward(self, H: Tensor, propagation_matrix: Tensor) -> Tensor:
        """Return `(n_items, n_rois, width)`."""
        Z = propagation_matrix @ H
        return torch.cat([H, Z], dim=-1) if self.adds_signal else Z


class GraphAttention(nn.Module):
    r"""Neighbours weighed by attention (GAT, Velickovic et al. 2018), two heads.

    .. math:: \alpha_{ij} = \mathrm{softmax}_j \mathrm{LeakyReLU}
              (t \cdot h_i + r \cdot h_j), \qquad Z_i = \sum_j \alpha_{ij} h_j

    over the neighbours j of i and itself. The linear map comes after the sum, which
    is the same, and gives every unit both heads.
    """

    n_heads, slope = 2, 0.2

    def __init__(self, n_channels: int) -> None:
        super().__init__()
        self.width = self.n_heads * n_channels
        self.target = nn.Linear(n_channels, self.n_heads, bias=False)
        self.source = nn.Linear(n_channels, self.n_heads, bias=False)

    def forward(self, H: Tensor, edge_mask: Tensor) -> Tensor:
        """Return `(n_items, n_rois, width)`; `edge_mask` is -inf without an edge."""
        target_scores = self.target(H).mT[..., None]
        source_scores = self.source(H).mT[..., None, :]
        alpha = nn.functional.leaky_relu(target_scores + source_scores, self.slope)
        head_features = (alpha + edge_mask[:, None]).softmax(-1) @ H[:, None]
        return head_features.transpose(1, 2).flatten(2)


class AdaptiveDiffusion(nn.Module):
    r"""A learned radius for every channel (ADC, Zhao et al. 2021).

    .. math:: Z_{:, f} = e^{-|t_f| L} H_{:, f}
    """

    def __init__(self, n_channels: int) -> None:
        super().__init__()
        self.width = n_channels
        # at radius 1 a layer reaches the neighbours, and its gradient has not vanished
        self.raw_radius = nn.Parameter(torch.ones(n_channels))

    def forward(self, H: Tensor, eigenvalues: Tensor, eigenvectors: Tensor) -> Tensor:
        """Return `(n_items, n_rois, width)`."""
        spectral_response = torch.exp(-eigenvalues[..., None] * self.raw_radius.abs())
        return eigenvectors @ (spectral_response * (eigenvectors.mT @ H))


def _add_self_loops(W: np.ndarray) -> Tensor:
    """Return connectomes over their mean strength, with self loops of weight 1.

    Streamline counts go into the thousands: beside them a loop of 1 would be nothing,
    and a region's own value lost in the first layer. Over the mean strength, a region
    weighs as much as all its neighbours together; binary networks, which the methods
    were written for, are left as they are.
    """
    is_binary = bool(np.isin(W, (0.0, 1.0)).all())
    mean_strength = W.sum(-1).mean(-1)
    weight_unit = np.where((mean_strength > 0) & (not is_binary), mean_strength, 1.0)
    return torch.from_numpy(W / weight_unit[:, None, None] + np.eye(W.shape[-1]))


def _normalize_symmetric(A: Tensor) -> Tensor:
    inverse_sqrt_degrees = A.sum(-1).rsqrt()
    return inverse_sqrt_degrees[:, :, None] * A * inverse_sqrt_degrees[:, None, :]


def gcn_graphs(W: np.ndarray, scale: float = 0.0) -> tuple[Tensor, ...]:  # noqa: ARG001
    """Return :math:`D^{-1/2} (W + I) D^{-1/2}` (Kipf and Welling 2017)."""
    return (_normalize_symmetric(_add_self_loops(W)),)


def gdc_graphs(
    W: np.ndarray,
    scale: float = 0.0,  # noqa: ARG001
    teleport_probability: float = 0.15,
    n_neighbours: int = 64,
) -> tuple[Tensor, ...]:
    r"""Return graphs rewired by personalised PageRank (GDC, Gasteiger et al. 2019).

    .. math:: S = \alpha \left(I - (1 - \alpha) T\right)^{-1}, \qquad
              T = D^{-1/2} (W + I) D^{-1/2}

    The largest entries of each column are kept and summed to 1; symmetrised and
    normalised again, as an undirected GCN takes it.
    """
    T = _normalize_symmetric(_add_self_loops(W))
    S = teleport_probability * torch.linalg.inv(
        torch.eye(T.shape[-1]) - (1 - teleport_probability) * T
    )
    neighbour_rows = S.argsort(dim=1, descending=True)[
        :, : min(n_neighbours, S.shape[-1])
    ]
    S = torch.zeros_like(S).scatter(1, neighbour_rows, S.gather(1, neighbour_rows))
    S = S / S.sum(1, keepdim=True)
    return (_normalize_symmetric((S + S.mT) / 2),)


def gat_graphs(W: np.ndarray, scale: float = 0.0) -> tuple[Tensor, ...]:  # noqa: ARG001
    """Return 0 where a region sees another or itself, else -inf."""
    A = _add_self_loops(W)
    return (torch.zeros_like(A).masked_fill(A == 0, -torch.inf),)


def spectra(W: np.ndarray, scale: float = 0.0) -> tuple[Tensor, ...]:  # noqa: ARG001
    """Return eigenvalues and eigenvectors of every normalised Laplacian."""
    spectrum_blocks = SPECTRA.blocks(W, Preparation(), torch.float64)
    eigenvalues, eigenvectors = zip(*spectrum_blocks, strict=True)
    return torch.cat(eigenvalues), torch.cat(eigenvectors)


def heat_kernels(W: np.ndarray, scale: float) -> tuple[Tensor, ...]:
    """Return the heat kernel of every graph at one scale for all regions."""
    eigenvalues, eigenvectors = spectra(W)
    return (
        (eigenvectors * torch.exp(-scale * eigenvalues)[:, None]) @ eigenvectors.mT,
    )


class NetworkKind(NamedTuple):
    """A network to compare LSAP with: its title, its layers and what they need.

    Attributes
    ----------
    title : str
        Name of the model in studies and tables.
    layer : callable, optional
        `(n_channels) -> module` with the attribute `width`, its number of channels;
        without one the network sees no graph.
    graphs : callable, optional
        `(W, scale) -> tensors` that the layer takes of prepared connectomes.
    uses_scale : bool
        Whether the setting `scale` changes its graphs.
    """

    title: str
    layer: Callable[[int], Any] | None = None
    graphs: Callable[[np.ndarray, float], tuple[Tensor, ...]] | None = None
    uses_scale: bool = False

    @property
    def unused_settings(self) -> set[str]:
        """Settings of :class:`NetworkClassifier` that change nothing here."""
        setting_names = set() if self.uses_scale else {"scale"}
        if self.layer is None:
            setting_names |= {"threshold", "weights", "connectome"}
        return setting_names


NETWORKS: dict[str, NetworkKind] = {
    "mlp": NetworkKind("MLP"),
    "gcn": NetworkKind("GCN", MatrixProduct, gcn_graphs),
    "gat": NetworkKind("GAT", GraphAttention, gat_graphs),
    "gdc": NetworkKind("GDC", MatrixProduct, gdc_graphs),
    "graphheat": NetworkKind(
        "GraphHeat",
        partial(MatrixProduct, adds_signal=True),
        heat_kernels,
        uses_scale=True,
    ),
    "adc": NetworkKind("ADC", AdaptiveDiffusion, spectra),
}
"""Networks to compare LSAP with, by name. A further one is one more entry."""
