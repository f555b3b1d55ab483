"""Networks of all models: how signals travel along a graph, and a perceptron above.

A network asks its batch to `propagate` a signal by one of its layers: heat by the
spectral engine (:class:`brainlsap.graph.spectral.GraphBatch`), everything else by
matrices kept of each graph (:class:`DenseGraphs`). A further baseline is one entry of
:data:`NETWORKS`. The signals of all regions are flattened, and a perceptron classifies
them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from brainlsap.graph import Preparation
from brainlsap.graph.laplacian import SpectrumCache
from brainlsap.graph.spectral import ChebyshevSeries, GraphBatch, RegionTerms
from brainlsap.model.settings import HeatSettings, Settings

# Folds, kernels and starts of one process see the same graphs again and again.
SPECTRUM_CACHE = SpectrumCache()

# Dense graphs that are gone through at once where no gradient is needed.
GRAPHS_AT_ONCE = 256
# The released code pushes a scale up where it is below this (erratum 5).
_BARRIER = 0.01


class HeatScale(nn.Module):
    """The learnable scale of every region, kept where the kernel can be trusted.

    Parameters
    ----------
    n_rois : int
    initial_scale : float or array of shape (n_rois,)
        Initial scale of every region; all regions with a common scale start at the
        mean. Dimensionless.
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
    def step_(self, heat_settings: HeatSettings) -> None:
        """Take one plain gradient step, clipped, and project onto the accurate range.

        A penalty adds the l1 term's slope, read literally, or as the released code's
        barrier.
        """
        raw_scale, scale_clip = self.raw_scale, heat_settings.scale_clip
        if raw_scale.grad is None:
            return
        if heat_settings.scale_penalty != "none":
            is_l1_penalty = heat_settings.scale_penalty == "l1"
            penalty_gradient = 1.0 if is_l1_penalty else -1.0 * (raw_scale < _BARRIER)
            raw_scale.grad += heat_settings.penalty_weight * penalty_gradient
        # clamp lets NaN through, and a kernel at a scale of NaN cannot be computed
        clean_gradient = torch.nan_to_num(raw_scale.grad, nan=0.0)
        raw_scale.sub_(
            (heat_settings.scale_step * clean_gradient).clamp(-scale_clip, scale_clip)
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

    def select_items(self, item_indices: Tensor | slice) -> "DenseGraphs":
        """Return the batch of some items; a slice copies nothing."""
        selected_graphs = tuple(
            graph_matrix if len(graph_matrix) == 1 else graph_matrix[item_indices]
            for graph_matrix in self.graphs
        )
        return DenseGraphs(self.signal[item_indices], selected_graphs)

    def propagate(self, layer: nn.Module, H: Tensor | None = None) -> Tensor:
        """Return the output of a layer for the features, or for a signal H."""
        H = self.signal if H is None else H
        if torch.is_grad_enabled() or len(H) <= GRAPHS_AT_ONCE:
            return layer(H, *self.graphs)
        item_slices = [
            slice(k, k + GRAPHS_AT_ONCE) for k in range(0, len(H), GRAPHS_AT_ONCE)
        ]
        return torch.cat(
            [layer(H[p], *self.select_items(p).graphs) for p in item_slices]
        )


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
        attention_logits = nn.functional.leaky_relu(
            target_scores + source_scores, self.slope
        )
        head_features = (attention_logits + edge_mask[:, None]).softmax(-1) @ H[:, None]
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
    mean_strengths = W.sum(-1).mean(-1)
    weight_divisors = np.where(
        (mean_strengths > 0) & (not is_binary), mean_strengths, 1.0
    )
    return torch.from_numpy(W / weight_divisors[:, None, None] + np.eye(W.shape[-1]))


def _normalize_symmetrically(A: Tensor) -> Tensor:
    inverse_sqrt_degrees = A.sum(-1).rsqrt()
    return inverse_sqrt_degrees[:, :, None] * A * inverse_sqrt_degrees[:, None, :]


def gcn_graphs(W: np.ndarray, scale: float = 0.0) -> tuple[Tensor, ...]:  # noqa: ARG001
    """Return :math:`D^{-1/2} (W + I) D^{-1/2}` (Kipf and Welling 2017)."""
    return (_normalize_symmetrically(_add_self_loops(W)),)


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
    T = _normalize_symmetrically(_add_self_loops(W))
    S = teleport_probability * torch.linalg.inv(
        torch.eye(T.shape[-1]) - (1 - teleport_probability) * T
    )
    neighbour_indices = S.argsort(dim=1, descending=True)[
        :, : min(n_neighbours, S.shape[-1])
    ]
    S = torch.zeros_like(S).scatter(
        1, neighbour_indices, S.gather(1, neighbour_indices)
    )
    S = S / S.sum(1, keepdim=True)
    return (_normalize_symmetrically((S + S.mT) / 2),)


def gat_graphs(W: np.ndarray, scale: float = 0.0) -> tuple[Tensor, ...]:  # noqa: ARG001
    """Return 0 where a region sees another or itself, else -inf."""
    A = _add_self_loops(W)
    return (torch.zeros_like(A).masked_fill(A == 0, -torch.inf),)


def compute_spectra(W: np.ndarray, scale: float = 0.0) -> tuple[Tensor, ...]:  # noqa: ARG001
    """Return eigenvalues and eigenvectors of every normalised Laplacian."""
    spectrum_blocks = SPECTRUM_CACHE.iter_spectra(W, Preparation(), torch.float64)
    eigenvalues, eigenvectors = zip(*spectrum_blocks, strict=True)
    return torch.cat(eigenvalues), torch.cat(eigenvectors)


def heat_kernels(W: np.ndarray, scale: float) -> tuple[Tensor, ...]:
    """Return the heat kernel of every graph at one scale for all regions."""
    eigenvalues, eigenvectors = compute_spectra(W)
    return (
        (eigenvectors * torch.exp(-scale * eigenvalues)[:, None]) @ eigenvectors.mT,
    )


class NetworkKind(NamedTuple):
    """A network to compare LSAP with: its title, its layers and what they need.

    Attributes
    ----------
    title : str
        Name of the model in studies and tables.
    sentence : str
        Description of the network for the methods of reports; its title is the subject.
    make_layer : callable, optional
        `(n_channels) -> module` with the attribute `width`, its number of channels;
        without one the network sees no graph.
    make_graphs : callable, optional
        `(W, scale) -> tensors` that the layer takes of prepared connectomes.
    uses_scale : bool
        Whether the setting `scale` changes its graphs.
    """

    title: str
    sentence: str
    make_layer: Callable[[int], Any] | None = None
    make_graphs: Callable[[np.ndarray, float], tuple[Tensor, ...]] | None = None
    uses_scale: bool = False

    @property
    def unused_settings(self) -> set[str]:
        """Settings of :class:`NetworkClassifier` that change nothing here."""
        unused_name_set = set() if self.uses_scale else {"scale"}
        if self.make_layer is None:
            unused_name_set |= {"threshold", "weights", "connectome"}
        return unused_name_set


NETWORKS: dict[str, NetworkKind] = {
    "mlp": NetworkKind(
        "MLP", "MLP was a perceptron on the features, without the connectome."
    ),
    "gcn": NetworkKind(
        "GCN",
        "GCN was graph convolution with the normalised connectome (Kipf and Welling, "
        "2017).",
        MatrixProduct,
        gcn_graphs,
    ),
    "gat": NetworkKind(
        "GAT",
        "GAT averaged connected regions with learned attention weights (Velickovic et "
        "al., 2018).",
        GraphAttention,
        gat_graphs,
    ),
    "gdc": NetworkKind(
        "GDC",
        "GDC was graph convolution on the connectome after diffusion by personalised "
        "PageRank (Gasteiger et al., 2019).",
        MatrixProduct,
        gdc_graphs,
    ),
    "graphheat": NetworkKind(
        "GraphHeat",
        "GraphHeat was graph convolution with a heat kernel of one fixed scale (Xu et "
        "al., 2019).",
        partial(MatrixProduct, adds_signal=True),
        heat_kernels,
        uses_scale=True,
    ),
    "adc": NetworkKind(
        "ADC",
        "ADC was adaptive diffusion convolution, which learns a heat scale for each "
        "layer and channel (Zhao et al., 2021).",
        AdaptiveDiffusion,
        compute_spectra,
    ),
}
"""Networks to compare LSAP with, by name. Add an entry for a new network."""


def drop_random_entries(x: Tensor, dropout_rate: float, is_training: bool) -> Tensor:
    """Set a random share of the entries to 0, and scale up the rest to match.

    PyTorch's dropout draws a number for every entry, which takes a seventh of an epoch
    here; a random byte, or a few bits of it, is enough. The rate is rounded to 1/256,
    and the scale with it.
    """
    dropout_in_256ths = round(dropout_rate * 256)
    if not is_training or not dropout_in_256ths:
        return x
    return x * _make_keep_mask(
        _draw_random_bytes(x, dropout_in_256ths), dropout_in_256ths, x
    ).mul_(256 / (256 - dropout_in_256ths))


def _count_bits_per_entry(dropout_in_256ths: int) -> int:
    # entries share a byte where the rate needs few of its bits: 1/2 needs one
    return 9 - (dropout_in_256ths & -dropout_in_256ths).bit_length()


def _draw_random_bytes(input_tensor: Tensor, dropout_in_256ths: int) -> Tensor:
    """Return random bytes that decide which entries of a tensor are dropped."""
    n_bytes = -(
        -input_tensor.numel() // (8 // _count_bits_per_entry(dropout_in_256ths))
    )
    random_words = torch.randint(
        -(2**63), 2**63 - 1, (-(-n_bytes // 8),), device=input_tensor.device
    )
    return random_words.view(torch.uint8)[:n_bytes]


def _make_keep_mask(
    random_bytes: Tensor, dropout_in_256ths: int, input_tensor: Tensor
) -> Tensor:
    """Return 0 for dropped entries of a tensor and 1 for others, in its shape."""
    n_bits = _count_bits_per_entry(dropout_in_256ths)
    if n_bits < 8:
        bit_shifts = (
            n_bits * torch.arange(8 // n_bits, device=input_tensor.device)[:, None]
        )
        random_bytes = random_bytes & (((1 << n_bits) - 1) << bit_shifts).to(
            torch.uint8
        )
        byte_threshold = (dropout_in_256ths >> (8 - n_bits) << bit_shifts).to(
            torch.uint8
        )
    else:
        byte_threshold = torch.tensor(dropout_in_256ths, dtype=torch.uint8)
    # write numbers: converting from truth values takes ten times as long
    keep_mask = torch.ge(
        random_bytes, byte_threshold, out=input_tensor.new_empty(random_bytes.shape)
    )
    return keep_mask.flatten()[: input_tensor.numel()].view(input_tensor.shape)


class _LinearReluDrop(torch.autograd.Function):
    """drop(relu(Z weight^T + bias)), in few passes each way."""

    @staticmethod
    def forward(
        ctx: Any, Z: Tensor, weight: Tensor, bias: Tensor, dropout_in_256ths: int
    ) -> Tensor:
        # scale the weights, which are few, instead of the output
        ctx.factor = 256 / (256 - dropout_in_256ths)
        weight, bias = weight * ctx.factor, bias * ctx.factor
        H = torch.addmm(bias, Z.flatten(0, 1), weight.mT).relu_()
        if dropout_in_256ths:
            H.mul_(
                _make_keep_mask(
                    _draw_random_bytes(H, dropout_in_256ths), dropout_in_256ths, H
                )
            )
        ctx.save_for_backward(Z, weight, H)
        return H.view(*Z.shape[:2], -1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        Z, weight, H = ctx.saved_tensors
        # H is positive exactly where the entry was positive and not dropped; the
        # gradient overwrites it, since allocation costs more than the sums
        threshold_backward_function = torch.ops.aten.threshold_backward.grad_input
        linear_gradients = threshold_backward_function(
            grad_output.view_as(H), H, 0, grad_input=H
        )
        weight_gradients = linear_gradients.mT @ Z.flatten(0, 1) * ctx.factor
        return (
            (linear_gradients @ weight).view_as(Z),
            weight_gradients,
            linear_gradients.sum(0) * ctx.factor,
            None,
        )


class RegionStandardizer(nn.Module):
    """Standardise each region and channel over people.

    Diffused features shrink as the scale grows; without this the read-out sees
    numbers of another size at every step, and its ReLUs die. While training, the
    batch's own statistics are used; for prediction, those that :meth:`store_statistics`
    stored last (running means would lag behind a moving scale). A region that does
    not vary gives 0.
    """

    mean: Tensor
    deviation: Tensor

    def __init__(self, n_rois: int, n_channels: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(n_rois, n_channels))
        self.register_buffer("deviation", torch.ones(n_rois, n_channels))

    def forward(self, Z: Tensor) -> Tensor:
        """Standardise signals of shape `(n_items, n_rois, n_channels)`."""
        if self.training:
            return _Standardize.apply(Z)  # type: ignore[no-any-return]
        return (Z - self.mean) * _compute_inverse_sd(self.mean, self.deviation)

    @torch.no_grad()
    def store_statistics(self, Z: Tensor) -> None:
        """Store the statistics of these signals for prediction."""
        self.mean = Z.mean(0)
        self.deviation = (Z - self.mean).square_().mean(0).sqrt_()


def _compute_inverse_sd(feature_means: Tensor, feature_sds: Tensor) -> Tensor:
    return torch.where(
        feature_sds > 1e-6 * (1 + feature_means.abs()), 1 / feature_sds, 0.0
    )


class _Standardize(torch.autograd.Function):
    """Minus the mean over items, over their deviation: few passes each way."""

    @staticmethod
    def forward(ctx: Any, Z: Tensor) -> Tensor:
        feature_means = Z.mean(0)
        standardized_features = Z - feature_means
        region_inverse_sds = _compute_inverse_sd(
            feature_means, standardized_features.square().mean(0).sqrt_()
        )
        ctx.save_for_backward(
            standardized_features.mul_(region_inverse_sds), region_inverse_sds
        )
        return standardized_features

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        standardized_features, inverse_sds = ctx.saved_tensors
        mean_projection = (grad_output * standardized_features).mean(0)
        return (
            (grad_output - grad_output.mean(0))
            .addcmul_(standardized_features, mean_projection, value=-1)
            .mul_(inverse_sds)
        )


class _ReadRegions(torch.autograd.Function):
    """Features that a network of one heat layer computes, (n_items, n_units).

    Diffusion, standardisation, linear map, ReLU, dropout and the first map of the
    read-out in one: with all items of a region side by side, each is a product of
    matrices or one pass, and nothing is copied in between. `statistics` are mean and
    standard deviation (n_rois, n_channels) for prediction; without them, they are those
    of the items. `keep_mask` is the largest value of each unit: 0 where it is dropped.
    """

    @staticmethod
    def forward(
        ctx: Any,
        region_scales: Tensor,
        weight: Tensor,
        bias: Tensor,
        readout_weight: Tensor,
        region_terms: RegionTerms,
        chebyshev_series: ChebyshevSeries,
        keep_mask: Tensor | None,
        dropout_factor: float,
        stored_means_and_sds: tuple[Tensor, Tensor] | None,
    ) -> Tensor:
        c, slope_coefficients = chebyshev_series.truncated_coefs_and_slopes(
            region_scales
        )
        means, sds = (
            region_terms.means_and_sds(c)
            if stored_means_and_sds is None
            else stored_means_and_sds
        )
        inverse_sds = _compute_inverse_sd(means, sds)
        needs_slope = ctx.needs_input_grad[0]
        # Rows of every region: standardised channels, ones, and slopes of the channels.
        rows = region_terms.diffuse(
            c, means, inverse_sds, slope_coefficients if needs_slope else None
        )
        # The row of ones adds the bias. Scale the weights, which are few, instead of
        # the output.
        weights_and_bias = torch.cat([weight, bias[:, None]], dim=1) * dropout_factor
        n_weight_columns = weights_and_bias.shape[1]
        H = torch.bmm(
            weights_and_bias.expand(len(rows), -1, -1), rows[:, :n_weight_columns]
        )
        if keep_mask is None:
            H.relu_()
        else:
            H.view(-1).clamp_(keep_mask.new_zeros(()), keep_mask)
        ctx.factor, ctx.covariance = dropout_factor, None
        if needs_slope and stored_means_and_sds is None:
            ctx.covariance = region_terms.combination_covariances(c, slope_coefficients)
        ctx.save_for_backward(rows, inverse_sds, weights_and_bias, H, readout_weight)
        return (readout_weight @ H.flatten(0, 1)).mT

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        rows, inverse_sds, weights_and_bias, H, readout_weight = ctx.saved_tensors
        readout_gradients = (H.flatten(0, 1) @ grad_output).mT
        unit_gradients = (readout_weight.mT @ grad_output.mT).view_as(H)
        # H is positive exactly where the entry was positive and not dropped.
        threshold_backward_function = torch.ops.aten.threshold_backward.grad_input
        threshold_backward_function(unit_gradients, H, 0, grad_input=unit_gradients)
        # Sums over items of the gradient of every unit times every row.
        gradient_products = torch.bmm(unit_gradients, rows.mT)
        n_channels, n_weight_columns = (
            weights_and_bias.shape[1] - 1,
            weights_and_bias.shape[1],
        )
        weight_gradients = (
            gradient_products[:, :, :n_weight_columns].sum(0) * ctx.factor
        )
        scale_gradients = None
        if ctx.needs_input_grad[0]:
            # The same of the gradient of every standardised channel.
            channel_products = weights_and_bias[:, :n_channels].mT @ gradient_products
            channel_slopes = channel_products[:, :, n_weight_columns:].diagonal(
                dim1=1, dim2=2
            )
            if ctx.covariance is not None:
                # The standard deviation changes with the scale, too.
                diagonal_products = channel_products.diagonal(dim1=1, dim2=2)
                sd_slopes = ctx.covariance * inverse_sds
                channel_slopes = channel_slopes - diagonal_products * sd_slopes
            scale_gradients = (channel_slopes * inverse_sds).sum(1)
        missing_gradients = (None,) * 5
        return (
            scale_gradients,
            weight_gradients[:, :-1],
            weight_gradients[:, -1],
            readout_gradients,
            *missing_gradients,
        )


class DropoutMasks:
    """Random masks of 0 and the largest number: slices of a pool.

    The pool is drawn anew now and then.

    Drawing a mask takes longer than using it. Two steps that take their slices from one
    pool have the masks of other entries. Entries are the largest values that units
    may have, so that ReLU and dropout are one pass.

    Parameters
    ----------
    dropout_in_256ths : int
        Share of zeros, in 1/256.
    """

    n_uses = 16

    def __init__(self, dropout_in_256ths: int) -> None:
        self.dropout_in_256ths = dropout_in_256ths
        self._pool = torch.empty(0)
        self._n_left = 0

    def draw_mask(self, like_tensor: Tensor, n_entries: int) -> Tensor:
        """Return a mask of so many entries, on the device and of the dtype of a tensor.

        It is valid until the next call.
        """
        if not self._n_left or len(self._pool) < 2 * n_entries:
            mask_pool = like_tensor.new_empty(2 * n_entries)
            random_bytes = _draw_random_bytes(mask_pool, self.dropout_in_256ths)
            keep_mask = _make_keep_mask(random_bytes, self.dropout_in_256ths, mask_pool)
            self._pool = keep_mask.mul_(torch.finfo(mask_pool.dtype).max)
            self._n_left = self.n_uses
        self._n_left -= 1
        mask_start = int(torch.randint(len(self._pool) - n_entries + 1, ()))
        return self._pool[mask_start : mask_start + n_entries]


class GraphNetwork(nn.Module):
    r"""K layers along the graph, flattened, and a perceptron.

    .. math:: H_k = \mathrm{ReLU}\left(\mathrm{std}(P(H_{k-1})) W_k + b_k\right)

    For LSAP P is the heat kernel K(s), whose row p has region p's own scale; all
    layers share the scales. For the other networks of :data:`NETWORKS` P is theirs,
    and everything else is the same.

    Parameters
    ----------
    n_rois, n_channels, n_classes : int
        Regions, input features per region, classes.
    settings : Settings
        Layers, units, dropout, scales; what P is.
    measured_region_mask : bool Tensor of shape (n_rois,)
        Regions that the read-out sees; the others only pass signals on.
    initial_scales : float or array of shape (n_rois,)
        Initial values of the scales.
    """

    rows: Tensor

    def __init__(
        self,
        n_rois: int,
        n_channels: int,
        n_classes: int,
        network_settings: Settings,
        measured_region_mask: Tensor,
        initial_scales: float | np.ndarray | Tensor,
    ) -> None:
        super().__init__()
        is_heat = network_settings.network == "heat"
        make_layer = None if is_heat else NETWORKS[network_settings.network].make_layer
        self.heat: HeatScale | None = None
        if is_heat:
            max_scale = network_settings.max_scale or float("inf")
            self.heat = HeatScale(
                n_rois, initial_scales, max_scale, network_settings.scale_mode
            )
        n_layers = network_settings.n_layers if is_heat or make_layer else 0
        layer_input_sizes = [n_channels] + [network_settings.hidden_units] * n_layers
        graph_layers = [
            make_layer(n_inputs) for n_inputs in layer_input_sizes[:-1] if make_layer
        ]
        layer_widths = [
            graph_layer.width for graph_layer in graph_layers
        ] or layer_input_sizes[:-1]
        self.layers = nn.ModuleList(graph_layers)
        self.mix = nn.ModuleList(
            nn.Linear(a, b)
            for a, b in zip(layer_widths, layer_input_sizes[1:], strict=True)
        )
        standardizes_regions = network_settings.standardize == "region"
        self.standardize = nn.ModuleList(
            RegionStandardizer(n_rois, n_inputs)
            if standardizes_regions
            else nn.Identity()
            for n_inputs in layer_widths
        )
        n_measured = int(measured_region_mask.sum())
        self.n_classes, self.ordinal = n_classes, network_settings.head == "ordinal"
        n_outputs = n_classes - self.ordinal
        self.readout = nn.Linear(
            n_measured * layer_input_sizes[-1], network_settings.readout_units
        )
        self.output = nn.Linear(network_settings.readout_units, n_outputs)
        self.dropout = network_settings.dropout
        # indices, not a mask: boolean indexing would synchronise the GPU
        self.register_buffer("rows", measured_region_mask.nonzero().flatten())
        # One layer of heat, whose input needs no gradient, is computed at once.
        self.reads_terms = is_heat and n_layers == 1 and standardizes_regions
        self._dropout_masks = DropoutMasks(round(network_settings.dropout * 256))

    def forward(self, batch: GraphBatch | DenseGraphs) -> Tensor:
        """Return logits of shape `(n_items, n_classes)`, with the batch's offset."""
        if self.reads_terms:
            readout_activations = self._compute_one_layer_readout(batch)
        else:
            readout_activations = self._compute_readout_units(batch)
        # the paper's supplement puts a ReLU on the logits; its authors' code does not
        logits = self.output(
            drop_random_entries(readout_activations, self.dropout, self.training)
        )
        logits = ordinal_log_probabilities(logits) if self.ordinal else logits
        return logits if batch.offset is None else logits + batch.offset

    def _compute_readout_units(self, batch: GraphBatch | DenseGraphs) -> Tensor:
        """Return the hidden units of the read-out."""
        Z = self._propagate_layers(batch)
        if (
            len(self.rows) < Z.shape[1]
        ):  # costs a copy of the largest array, forward and backward
            Z = Z[:, self.rows]
        if len(self.mix):
            H = self._apply_linear_relu(Z, -1)
        else:  # the unchanged features
            H = drop_random_entries(Z, self.dropout, self.training)
        return torch.relu(self.readout(H.flatten(1)))

    def _compute_one_layer_readout(self, batch: Any) -> Tensor:
        """Return the hidden units of the read-out of a network of one layer."""
        region_terms, layer = batch.region_terms(self.rows), self.mix[0]
        keep_mask, dropout_factor, stored_means_and_sds = None, 1.0, None
        if self.training:
            dropout_in_256ths = self._dropout_masks.dropout_in_256ths
            dropout_factor = 256 / (256 - dropout_in_256ths)
            if dropout_in_256ths:
                n_items = region_terms.terms.shape[-1]
                n_entries = self.readout.in_features * n_items
                keep_mask = self._dropout_masks.draw_mask(batch.signal, n_entries)
        else:
            standardizer: Any = self.standardize[0]
            stored_means_and_sds = (
                standardizer.mean[self.rows],
                standardizer.deviation[self.rows],
            )
        readout_input = _ReadRegions.apply(
            self.heat()[self.rows],  # type: ignore[misc]
            layer.weight,
            layer.bias,
            self.readout.weight,
            region_terms,
            batch.series,
            keep_mask,
            dropout_factor,
            stored_means_and_sds,
        )
        return torch.relu(readout_input + self.readout.bias)

    @torch.no_grad()
    def remember_statistics(self, batch: GraphBatch | DenseGraphs) -> None:
        """Store these scans' statistics, at the present weights, for prediction."""
        if self.reads_terms:
            scale = self.heat()[self.rows]  # type: ignore[misc]
            c, _ = batch.series.truncated_coefs_and_slopes(scale)  # type: ignore[union-attr]
            means, sds = batch.region_terms(self.rows).means_and_sds(c)  # type: ignore[union-attr]
            standardizer: Any = self.standardize[0]
            standardizer.mean = standardizer.mean.index_copy(0, self.rows, means)
            standardizer.deviation = standardizer.deviation.index_copy(
                0, self.rows, sds
            )
            return
        if any(
            isinstance(standardizer_layer, RegionStandardizer)
            for standardizer_layer in self.standardize
        ):
            was_training = self.training
            self.eval()
            self._propagate_layers(batch, stores_statistics=True)
            self.train(was_training)

    def _propagate_layers(
        self, batch: GraphBatch | DenseGraphs, stores_statistics: bool = False
    ) -> Tensor:
        """Return the propagated, standardised input of the last linear map."""
        Z: Tensor = batch.signal
        H: Tensor | None = None  # the first layer's input is precomputed in the batch
        for layer_index, standardizer in enumerate(self.standardize):
            if layer_index:
                H = self._apply_linear_relu(Z, layer_index - 1)
            Z = batch.propagate(self.heat or self.layers[layer_index], H)
            if stores_statistics:
                standardizer.store_statistics(Z)  # type: ignore[operator]
            Z = standardizer(Z)
        return Z

    def _apply_linear_relu(self, Z: Tensor, layer_index: int) -> Tensor:
        """Return the linear map, ReLU and dropout of one layer."""
        dropout_in_256ths = round(self.dropout * 256) if self.training else 0
        weight_and_bias = self.mix[layer_index].weight, self.mix[layer_index].bias
        return _LinearReluDrop.apply(Z, *weight_and_bias, dropout_in_256ths)  # type: ignore[no-any-return]


def ordinal_log_probabilities(logits: Tensor) -> Tensor:
    r"""Return log-probabilities of ordered classes (CORN, Shi et al. 2023).

    Logit k says whether a scan that has reached stage k is beyond it. With
    :math:`f_k = \sigma(z_k)`,

    .. math:: P(y = k) = (1 - f_k) \prod_{j<k} f_j, \qquad
              P(y = K - 1) = \prod_{j<K-1} f_j

    which sum to 1 whatever the logits, so that the cross-entropy of the result is
    CORN's loss (up to what each of its terms is divided by).

    Parameters
    ----------
    logits : Tensor of shape (n_items, n_classes - 1)

    Returns
    -------
    Tensor of shape (n_items, n_classes)
    """
    log_pass_probabilities = nn.functional.logsigmoid(logits).cumsum(1)
    log_reach_probabilities = nn.functional.pad(log_pass_probabilities, (1, 0))
    log_stop_probabilities = nn.functional.pad(
        nn.functional.logsigmoid(-logits), (0, 1)
    )
    return log_reach_probabilities + log_stop_probabilities
