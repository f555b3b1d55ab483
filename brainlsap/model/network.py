"""One network for all: layers along the graph, flattened, a perceptron."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from brainlsap.model.propagation import NETWORKS, DenseGraphs, GraphBatch, HeatScale
from brainlsap.model.settings import Settings


def drop(x: Tensor, rate: float, training: bool) -> Tensor:
    """Set a random share of the entries to 0, and scale up the rest to match.

    Torch's own dropout draws a number for every entry, a seventh of an epoch here; a
    random byte, or a few bits of it, is enough. The rate is rounded to 1/256 and the
    rest scaled to it.
    """
    level = round(rate * 256)
    return x * _kept(x, level) if training and level else x


def rectify_and_drop(x: Tensor, rate: float, training: bool) -> Tensor:
    """Return `drop(relu(x), rate, training)` in the memory of `x`, which is lost.

    One pass less each way over the largest arrays of an epoch.
    """
    level = round(rate * 256) if training else 0
    return _RectifyAndDrop.apply(x, level)  # type: ignore[no-any-return]


class _RectifyAndDrop(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, level: int) -> Tensor:
        x.relu_()
        if level:
            x.mul_(_kept(x, level))
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        ctx.factor = 256 / (256 - level)
        return x

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (out,) = ctx.saved_tensors
        # positive exactly where the entry was positive and kept
        slope = torch.ops.aten.threshold_backward(grad, out, 0)
        return (slope if ctx.factor == 1 else slope.mul_(ctx.factor)), None


def _kept(x: Tensor, level: int) -> Tensor:
    """Return 0 for what is dropped, else what makes up for it."""
    # entries share a byte where the rate needs few of its bits: 1/2 needs one
    n_bits = 9 - (level & -level).bit_length()
    shifts = n_bits * torch.arange(8 // n_bits, device=x.device)[:, None]
    masks = (((1 << n_bits) - 1) << shifts).to(torch.uint8)
    least = (level >> (8 - n_bits) << shifts).to(torch.uint8)
    n_bytes = -(-x.numel() // len(shifts))
    words = torch.randint(-(2**63), 2**63 - 1, (-(-n_bytes // 8),), device=x.device)
    drawn = words.view(torch.uint8)[:n_bytes] & masks
    # compared into numbers: to truth values, and those to numbers, takes ten times that
    kept = torch.ge(drawn, least, out=x.new_empty(drawn.shape))
    return kept.flatten()[: x.numel()].view(x.shape).mul_(256 / (256 - level))


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
        kept = self.mean, self.deviation
        mean, deviation = self.statistics(Z) if self.training else kept
        varies = deviation > 1e-6 * (1 + mean.abs())
        safe = torch.where(varies, deviation, torch.ones_like(deviation))
        return torch.where(varies, (Z - mean) / safe, torch.zeros_like(Z))

    @staticmethod
    def statistics(Z: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean and standard deviation over items."""
        mean = Z.mean(0)
        # the square root's slope at 0 is infinite, so a constant region is kept off it
        variance = (Z - mean).square().mean(0)
        return mean, variance.clamp_min(1e-16).sqrt()

    @torch.no_grad()
    def remember(self, Z: Tensor) -> None:
        """Store the statistics of these signals for prediction."""
        self.mean, self.deviation = self.statistics(Z)


class Readout(nn.Module):
    """A perceptron of two layers over flattened regions and channels."""

    def __init__(
        self, n_inputs: int, n_units: int, n_classes: int, dropout: float
    ) -> None:
        super().__init__()
        self.first = nn.Linear(n_inputs, n_units)
        self.second = nn.Linear(n_units, n_classes)
        self.dropout = dropout

    def forward(self, H: Tensor) -> Tensor:
        """Return logits of shape `(n_items, n_classes)`; no ReLU on them."""
        # the supplement of the paper puts a ReLU there; its authors' code does not
        H = rectify_and_drop(self.first(H), self.dropout, self.training)
        return self.second(H)


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
    """

    measured: Tensor

    def __init__(
        self,
        n_rois: int,
        n_channels: int,
        n_classes: int,
        settings: Settings,
        measured: Tensor,
    ) -> None:
        super().__init__()
        kind = None if settings.network == "heat" else NETWORKS[settings.network]
        self.heat: HeatScale | None = None
        if settings.network == "heat":
            self.heat = HeatScale(
                n_rois,
                float(settings.initial_scale),
                settings.max_scale or float("inf"),
                settings.scale_mode,
            )
        n_layers = settings.n_layers if self.heat is not None or kind else 0
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
        # a batch's statistics make every scan's output depend on the others
        self.joins_scans = standardizes
        self.layer_bytes = 4 * n_rois * max(widths)
        n_measured = int(measured.sum())
        self.n_classes, self.ordinal = n_classes, settings.head == "ordinal"
        n_outputs = n_classes - self.ordinal
        self.readout = Readout(
            n_measured * widths[-1], settings.readout_units, n_outputs, settings.dropout
        )
        self.linear = None
        if float(settings.linear_penalty):
            self.linear = nn.Linear(n_measured * n_channels, n_outputs)
            nn.init.zeros_(self.linear.weight)
        self.dropout = settings.dropout
        self.register_buffer("measured", measured)
        self.all_measured = bool(measured.all())

    def forward(self, batch: GraphBatch | DenseGraphs) -> Tensor:
        """Return logits of shape `(n_items, n_classes)`."""
        first = H = batch.signal
        for number, mix in enumerate(self.mix):
            Z = self.standardize[number](self._propagated(number, batch, H))
            first = first if number else Z
            last = number == len(self.mix) - 1
            # regions of all scans in one row: overwriting a view makes copies both ways
            Z = self._measured(Z) if last else Z
            H = rectify_and_drop(mix(Z.flatten(0, 1)), self.dropout, self.training)
            H = H.view(*Z.shape[:2], -1)
        if not len(self.mix):  # the features as they are
            H = drop(self._measured(H), self.dropout, self.training)
        logits = self.readout(H.flatten(1))
        if self.linear is not None:
            logits = logits + self.linear(self._measured(first).flatten(1))
        return ordinal_log_probabilities(logits) if self.ordinal else logits

    def penalty(self, settings: Settings) -> Tensor:
        """Return the weighted sum of squared weights that are held small."""
        total = settings.readout_penalty * self.readout.first.weight.square().sum()
        if self.linear is not None:
            squares = self.linear.weight.square().sum()
            total = total + float(settings.linear_penalty) * squares
        return total

    @torch.no_grad()
    def remember_statistics(self, batch: GraphBatch | DenseGraphs) -> None:
        """Store these scans' statistics, at the present weights, for prediction."""
        if not self.joins_scans:
            return
        was_training = self.training
        self.eval()
        H = batch.signal
        for number, standardize in enumerate(self.standardize):
            Z = self._propagated(number, batch, H)
            standardize.remember(Z)  # type: ignore[operator]
            if number < len(self.mix) - 1:
                H = torch.relu(self.mix[number](standardize(Z)))
        self.train(was_training)

    def _propagated(self, number: int, batch: Any, H: Tensor) -> Tensor:
        layer = self.layers[number] if self.heat is None else self.heat
        # the first layer's signal lies in the batch, in the form that suits it
        return batch.propagate(layer, H if number else None)

    def _measured(self, H: Tensor) -> Tensor:
        # picking regions, and its way back, are copies of the largest array
        return H if self.all_measured else H[:, self.measured]


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
