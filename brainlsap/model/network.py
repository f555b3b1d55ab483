"""One network for all: layers along the graph, flattened, a perceptron."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from brainlsap.graph.spectral import GraphBatch
from brainlsap.model.propagation import NETWORKS, DenseGraphs, HeatScale
from brainlsap.model.settings import Settings


def drop(x: Tensor, rate: float, training: bool) -> Tensor:
    """Set a random share of the entries to 0, and scale up the rest to match.

    Torch's own dropout draws a number for every entry, a seventh of an epoch here; a
    random byte, or a few bits of it, is enough. The rate is rounded to 1/256 and the
    rest scaled to it.
    """
    level = round(rate * 256)
    if not training or not level:
        return x
    return x * _kept(_draw(x, level), level, x).mul_(256 / (256 - level))


def _n_bits(level: int) -> int:
    # entries share a byte where the rate needs few of its bits: 1/2 needs one
    return 9 - (level & -level).bit_length()


def _draw(x: Tensor, level: int) -> Tensor:
    """Return random bytes that tell of every entry of `x` whether it is dropped."""
    n_bytes = -(-x.numel() // (8 // _n_bits(level)))
    words = torch.randint(-(2**63), 2**63 - 1, (-(-n_bytes // 8),), device=x.device)
    return words.view(torch.uint8)[:n_bytes]


def _kept(drawn: Tensor, level: int, x: Tensor) -> Tensor:
    """Return 0 for what is dropped of `x`, else 1, in its shape."""
    n_bits = _n_bits(level)
    if n_bits < 8:
        shifts = n_bits * torch.arange(8 // n_bits, device=x.device)[:, None]
        drawn = drawn & (((1 << n_bits) - 1) << shifts).to(torch.uint8)
        least = (level >> (8 - n_bits) << shifts).to(torch.uint8)
    else:
        least = torch.tensor(level, dtype=torch.uint8)
    # compared into numbers: to truth values, and those to numbers, takes ten times that
    kept = torch.ge(drawn, least, out=x.new_empty(drawn.shape))
    return kept.flatten()[: x.numel()].view(x.shape)


class _Mix(torch.autograd.Function):
    """drop(relu(Z weight^T + bias)), in few passes each way."""

    @staticmethod
    def forward(
        ctx: Any, Z: Tensor, weight: Tensor, bias: Tensor, level: int
    ) -> Tensor:
        # what dropout scales up by: the weights are few
        ctx.factor = 256 / (256 - level)
        weight, bias = weight * ctx.factor, bias * ctx.factor
        H = torch.addmm(bias, Z.flatten(0, 1), weight.mT).relu_()
        if level:
            H.mul_(_kept(_draw(H, level), level, H))
        ctx.save_for_backward(Z, weight, H)
        return H.view(*Z.shape[:2], -1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        Z, weight, H = ctx.saved_tensors
        # H is positive exactly where the entry was positive and kept; the result
        # takes its place, since fresh memory costs more than the sums
        masked = torch.ops.aten.threshold_backward.grad_input
        back = masked(grad.view_as(H), H, 0, grad_input=H)
        by_weight = back.mT @ Z.flatten(0, 1) * ctx.factor
        return (back @ weight).view_as(Z), by_weight, back.sum(0) * ctx.factor, None


class RegionStandardizer(nn.Module):
    """Standardise each region and channel over people.

    Diffused features shrink as the scale grows; without this the read-out sees
    numbers of another size at every step and its ReLUs die. While training, the
    batch's own statistics are used; for prediction, those that :meth:`remember`
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
        return (Z - self.mean) * _inverse(self.mean, self.deviation)

    @torch.no_grad()
    def remember(self, Z: Tensor) -> None:
        """Store the statistics of these signals for prediction."""
        self.mean = Z.mean(0)
        self.deviation = (Z - self.mean).square_().mean(0).sqrt_()


def _inverse(mean: Tensor, deviation: Tensor) -> Tensor:
    return torch.where(deviation > 1e-6 * (1 + mean.abs()), 1 / deviation, 0.0)


class _Standardize(torch.autograd.Function):
    """Minus the mean over items, over their deviation: few passes each way."""

    @staticmethod
    def forward(ctx: Any, Z: Tensor) -> Tensor:
        mean = Z.mean(0)
        out = Z - mean
        inverse = _inverse(mean, out.square().mean(0).sqrt_())
        ctx.save_for_backward(out.mul_(inverse), inverse)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        out, inverse = ctx.saved_tensors
        along = (grad * out).mean(0)
        return (grad - grad.mean(0)).addcmul_(out, along, value=-1).mul_(inverse)


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
    measured : bool Tensor of shape (n_rois,)
        Regions that the read-out sees; the others only pass signals on.
    scales : float or array of shape (n_rois,)
        Where heat scales start.
    """

    rows: Tensor

    def __init__(
        self,
        n_rois: int,
        n_channels: int,
        n_classes: int,
        settings: Settings,
        measured: Tensor,
        scales: Any,
    ) -> None:
        super().__init__()
        is_heat, kind = settings.network == "heat", NETWORKS.get(settings.network)
        self.heat: HeatScale | None = None
        if is_heat:
            largest = settings.max_scale or float("inf")
            self.heat = HeatScale(n_rois, scales, largest, settings.scale_mode)
        n_layers = settings.n_layers if is_heat or kind else 0
        widths = [n_channels] + [settings.hidden_units] * n_layers
        layers = [kind.layer(width) for width in widths[:-1] if kind]
        carried = [layer.width for layer in layers] or widths[:-1]
        self.layers = nn.ModuleList(layers)
        self.mix = nn.ModuleList(
            nn.Linear(a, b) for a, b in zip(carried, widths[1:], strict=True)
        )
        standardizes = settings.standardize == "region"
        self.standardize = nn.ModuleList(
            RegionStandardizer(n_rois, width) if standardizes else nn.Identity()
            for width in carried
        )
        n_measured = int(measured.sum())
        self.n_classes, self.ordinal = n_classes, settings.head == "ordinal"
        n_outputs = n_classes - self.ordinal
        self.readout = nn.Linear(n_measured * widths[-1], settings.readout_units)
        self.output = nn.Linear(settings.readout_units, n_outputs)
        self.dropout = settings.dropout
        # by number: to look which they are would stop a graphics card
        self.register_buffer("rows", measured.nonzero().flatten())

    def forward(self, batch: GraphBatch | DenseGraphs) -> Tensor:
        """Return logits of shape `(n_items, n_classes)`, with the batch's offset."""
        Z = self._carried(batch)
        if len(self.rows) < Z.shape[1]:  # a copy of the largest array, and its way back
            Z = Z[:, self.rows]
        if len(self.mix):
            H = self._mixed(Z, -1)
        else:  # the features as they are
            H = drop(Z, self.dropout, self.training)
        # the paper's supplement puts a ReLU on the logits; its authors' code does not
        units = torch.relu(self.readout(H.flatten(1)))
        logits = self.output(drop(units, self.dropout, self.training))
        logits = ordinal_log_probabilities(logits) if self.ordinal else logits
        return logits if batch.offset is None else logits + batch.offset

    @torch.no_grad()
    def remember_statistics(self, batch: GraphBatch | DenseGraphs) -> None:
        """Store these scans' statistics, at the present weights, for prediction."""
        if any(isinstance(one, RegionStandardizer) for one in self.standardize):
            was_training = self.training
            self.eval()
            self._carried(batch, remember=True)
            self.train(was_training)

    def _carried(self, batch: Any, remember: bool = False) -> Tensor:
        """Return what the last layer carries, standardised."""
        Z: Tensor = batch.signal
        H: Tensor | None = None  # the first layer's lies in the batch, as suits it
        for number, standardize in enumerate(self.standardize):
            if number:
                H = self._mixed(Z, number - 1)
            Z = batch.propagate(self.heat or self.layers[number], H)
            if remember:
                standardize.remember(Z)  # type: ignore[operator]
            Z = standardize(Z)
        return Z

    def _mixed(self, Z: Tensor, number: int) -> Tensor:
        level = round(self.dropout * 256) if self.training else 0
        weights = self.mix[number].weight, self.mix[number].bias
        return _Mix.apply(Z, *weights, level)  # type: ignore[no-any-return]


def ordinal_log_probabilities(logits: Tensor) -> Tensor:
    r"""Return log-probabilities of ordered classes (CORN, Shi et al. 2023).

    Logit k says whether a scan that has come to stage k is beyond it. With
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
    beyond = nn.functional.logsigmoid(logits).cumsum(1)
    come = nn.functional.pad(beyond, (1, 0))
    stays = nn.functional.pad(nn.functional.logsigmoid(-logits), (0, 1))
    return come + stays
