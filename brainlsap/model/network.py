"""The network: heat convolutions that share one scale, then a read-out."""

import itertools
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from brainlsap.graph import SpectralEngine
from brainlsap.model.dropout import rectify_and_drop
from brainlsap.model.layers import (
    HeatScale,
    Readout,
    RegionStandardizer,
    ordinal_log_probabilities,
)
from brainlsap.model.settings import Settings

# A first layer's kept terms may take this much memory; beyond, they are made anew.
_TERMS_BYTES = 1_000_000_000


@dataclass(frozen=True, eq=False)
class GraphBatch:
    """Scans ready for the network: graphs, and what the first layer can precompute.

    Parameters
    ----------
    engine : SpectralEngine
        Over these scans.
    signal : Tensor
        Terms of shape `(n_items, order + 1, n_rois, n_channels)` if `has_terms`,
        else the transform of shape `(n_items, n_rois, n_channels)`.
    has_terms : bool
        Which of the two `signal` is.
    root : Tensor of shape (n_items, n_rois, 1), optional
        Square root of every region's degree. With it rows of the kernel sum to 1
        (random walk): :math:`D^{-1/2} K D^{1/2}`.

    Examples
    --------
    >>> from brainlsap.graph import decompose
    >>> engine = SpectralEngine(decompose(torch.zeros(4, 3, 3)), kernel="exact")
    >>> batch = GraphBatch.build(engine, torch.ones(4, 3, 2))
    >>> len(batch), batch.diffuse(torch.ones(3)).shape
    (4, torch.Size([4, 3, 2]))
    """

    engine: SpectralEngine
    signal: Tensor
    has_terms: bool
    root: Tensor | None = None

    @classmethod
    def build(
        cls, engine: SpectralEngine, X: Tensor, root: Tensor | None = None
    ) -> "GraphBatch":
        """Precompute what the first layer can.

        Parameters
        ----------
        engine : SpectralEngine
            Over the scans.
        X : Tensor of shape (n_items, n_rois, n_channels)
            Standardised features.
        root : Tensor of shape (n_items, n_rois, 1), optional
            Square root of every region's degree, for random-walk normalisation.

        Returns
        -------
        GraphBatch
        """
        X_hat = engine.to_spectrum(X if root is None else X * root)
        n_terms = 0 if engine.order is None else engine.order + 1
        small = X.numel() * n_terms * X.element_size() <= _TERMS_BYTES
        has_terms = n_terms > 0 and small
        signal = engine.terms(X_hat) if has_terms else X_hat
        return cls(engine, signal, has_terms, root)

    def __len__(self) -> int:
        return len(self.signal)

    def select(self, items: Tensor | slice) -> "GraphBatch":
        """Return the batch of some items; a slice copies nothing."""
        root = None if self.root is None else self.root[items]
        engine = self.engine.select(items)
        return GraphBatch(engine, self.signal[items], self.has_terms, root)

    def diffuse(self, scale: Tensor) -> Tensor:
        """Diffuse the input features; shape `(n_items, n_rois, n_channels)`."""
        if self.has_terms:
            Z = self.engine.combine(self.signal, scale)
        else:
            Z = self.engine.diffuse_spectrum(self.signal, scale)
        return Z if self.root is None else Z / self.root

    def diffuse_signal(self, H: Tensor, scale: Tensor) -> Tensor:
        """Diffuse signals of shape `(n_items, n_rois, n_channels)`.

        Parameters
        ----------
        H : Tensor of shape (n_items, n_rois, n_channels)
            Of these scans.
        scale : Tensor of shape (n_rois,)
            Heat scale of every region.

        Returns
        -------
        Tensor of shape (n_items, n_rois, n_channels)
        """
        if self.root is None:
            return self.engine.diffuse(H, scale)
        return self.engine.diffuse(H * self.root, scale) / self.root


class HeatNetwork(nn.Module):
    r"""LSAP for graphs: K heat convolutions, flattened, and a perceptron.

    .. math:: H_k = \mathrm{ReLU}\left(\mathrm{std}(K(s) H_{k-1}) W_k + b_k\right)

    Row p of the kernel K(s) has region p's own scale; all layers share the scales.

    Parameters
    ----------
    n_rois, n_channels, n_classes : int
        Regions, input features per region, classes.
    settings : Settings
        Layers, units, dropout, scales.
    measured : bool Tensor of shape (n_rois,)
        Regions that the read-out sees; the others only pass heat on.

    Examples
    --------
    >>> from brainlsap.graph import decompose
    >>> from brainlsap.model.settings import resolve_settings
    >>> given = {"initial_scale": 2.0, "linear_penalty": 0.0}
    >>> settings = resolve_settings("default", given)
    >>> engine = SpectralEngine(decompose(torch.zeros(4, 3, 3)), kernel="exact")
    >>> batch = GraphBatch.build(engine, torch.ones(4, 3, 2))
    >>> HeatNetwork(3, 2, 5, settings, torch.tensor([True] * 3))(batch).shape
    torch.Size([4, 5])
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
        self.heat = HeatScale(
            n_rois,
            float(settings.initial_scale),
            settings.max_scale or float("inf"),
            settings.scale_mode,
        )
        widths = [n_channels] + [settings.hidden_units] * settings.n_layers
        self.widest = max(widths)
        self.mix = nn.ModuleList(nn.Linear(a, b) for a, b in itertools.pairwise(widths))
        standardizes = settings.standardize == "region"
        self.standardize = nn.ModuleList(
            RegionStandardizer(n_rois, width) if standardizes else nn.Identity()
            for width in widths[:-1]
        )
        # a batch's statistics make every scan's output depend on the others
        self.joins_scans = standardizes
        n_inputs = int(measured.sum()) * widths[-1]
        self.n_classes, self.ordinal = n_classes, settings.head == "ordinal"
        n_outputs = n_classes - self.ordinal
        # in one pass with the rectifying, over the largest array of an epoch
        self.readout = Readout(
            n_inputs,
            settings.readout_units,
            n_outputs,
            settings.dropout,
            drops_inputs=False,
        )
        self.linear = None
        if float(settings.linear_penalty):
            self.linear = nn.Linear(int(measured.sum()) * n_channels, n_outputs)
            nn.init.zeros_(self.linear.weight)
        self.dropout = settings.dropout
        self.register_buffer("measured", measured)
        self.all_measured = bool(measured.all())

    @property
    def layer_bytes(self) -> int:
        """What the widest layer holds of one scan."""
        return self.heat.n_rois * self.widest * self.heat.raw_scale.element_size()

    def forward(self, batch: GraphBatch) -> Tensor:
        """Return logits of shape `(n_items, n_classes)`."""
        first = self.standardize[0](self._diffuse(batch, None))
        Z = first
        for standardize, mix in zip(self.standardize[1:], self.mix, strict=False):
            Z = standardize(self._diffuse(batch, self._mixed(mix, Z)))
        return self._logits(self._mixed(self.mix[-1], self._measured(Z)), first)

    def penalty(self, settings: Settings) -> Tensor:
        """Return the weighted sum of squared weights that are held small."""
        total = settings.readout_penalty * self.readout.penalty()
        if self.linear is None:
            return total
        return (
            total + float(settings.linear_penalty) * self.linear.weight.square().sum()
        )

    @torch.no_grad()
    def remember_statistics(self, batch: GraphBatch) -> None:
        """Store these scans' statistics, at the present scales, for prediction."""
        was_training = self.training
        self.eval()
        H = None
        for standardize, mix in zip(self.standardize, self.mix, strict=True):
            if not isinstance(standardize, RegionStandardizer):
                break
            Z = self._diffuse(batch, H)
            standardize.remember(Z)
            if mix is not self.mix[-1]:
                H = torch.relu(mix(standardize(Z)))
        self.train(was_training)

    def _diffuse(self, batch: GraphBatch, H: Tensor | None) -> Tensor:
        scale = self.heat()
        return batch.diffuse(scale) if H is None else batch.diffuse_signal(H, scale)

    def _mixed(self, mix: nn.Module, Z: Tensor) -> Tensor:
        """Mix channels, rectify, drop."""
        # regions of all scans in one row: overwriting a view makes copies both ways
        H = rectify_and_drop(mix(Z.flatten(0, 1)), self.dropout, self.training)
        return H.view(*Z.shape[:2], -1)

    def _logits(self, H: Tensor, first: Tensor) -> Tensor:
        logits = self.readout(H.flatten(1))
        if self.linear is not None:
            logits = logits + self.linear(self._measured(first).flatten(1))
        return ordinal_log_probabilities(logits) if self.ordinal else logits

    def _measured(self, H: Tensor) -> Tensor:
        # picking regions, and its way back, are copies of the largest array
        return H if self.all_measured else H[:, self.measured]
