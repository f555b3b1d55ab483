"""The network's parts: a scale for every region, standardising, the read-out."""

import torch
from torch import Tensor, nn

from brainlsap.model.dropout import drop, rectify_and_drop


class HeatScale(nn.Module):
    """The learnable range of every region, kept where the kernel can be trusted.

    Parameters
    ----------
    n_rois : int
        Number of regions.
    initial_scale : float
        Where every scale starts; dimensionless.
    largest : float
        Largest scale that the kernel is trusted at.
    mode : {"region", "global", "frozen"}
        One scale for each region, one for all, or the start for ever.

    Examples
    --------
    >>> HeatScale(3, initial_scale=2.0, largest=10.0)().tolist()
    [2.0, 2.0, 2.0]
    """

    def __init__(
        self, n_rois: int, initial_scale: float, largest: float, mode: str = "region"
    ) -> None:
        super().__init__()
        self.n_rois, self.initial_scale = n_rois, initial_scale
        self.largest, self.mode = largest, mode
        size = n_rois if mode == "region" else 1
        self.raw_scale = nn.Parameter(torch.empty(size), mode != "frozen")
        self.n_projected = 0
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Put every scale back to its start."""
        nn.init.constant_(self.raw_scale, self.initial_scale)

    def forward(self) -> Tensor:
        """Return the scale of every region, shape `(n_rois,)`."""
        return self.raw_scale.expand(self.n_rois)

    @torch.no_grad()
    def step_(self, size: float, clip: float) -> None:
        """Take one plain gradient step, clipped, and project onto what is trusted.

        Parameters
        ----------
        size : float
            Step size.
        clip : float
            The most that a scale moves.
        """
        if self.raw_scale.grad is None:
            return
        # clamp lets NaN through, and no kernel can be made at a scale of NaN
        slope = torch.nan_to_num(self.raw_scale.grad, nan=0.0)
        self.raw_scale.sub_((size * slope).clamp(-clip, clip))
        self.project_()

    @torch.no_grad()
    def project_(self) -> None:
        """Bring scales back into [0, largest]; count those above."""
        self.n_projected += int((self.raw_scale > self.largest).sum())
        self.raw_scale.clamp_(0.0, self.largest)

    def extra_repr(self) -> str:
        """Say mode and limit."""
        return f"n_rois={self.n_rois}, mode={self.mode}, largest={self.largest:g}"


class RegionStandardizer(nn.Module):
    """Standardise each region and channel over people.

    Diffused features shrink as the scale grows; without this the read-out sees
    numbers of another size at every step and its ReLUs die. While training, the
    batch's own statistics are used; for prediction, those that :meth:`remember`
    stored last (running means would lag behind a moving scale). A region that does
    not vary gives 0.

    Parameters
    ----------
    n_rois, n_channels : int
        Size of the signals.

    Examples
    --------
    >>> standardizer = RegionStandardizer(1, 1)
    >>> standardizer(torch.tensor([[[1.0]], [[3.0]]])).flatten().tolist()
    [-1.0, 1.0]
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
            mean, deviation = self.statistics(Z)
        else:
            mean, deviation = self.mean, self.deviation
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
    """A perceptron of two layers over flattened regions and channels.

    Parameters
    ----------
    n_inputs : int
        Regions times channels.
    n_units : int
        Hidden units.
    n_classes : int
        Number of classes.
    dropout : float
        Share of inputs and hidden units dropped while training.
    drops_inputs : bool
        Without it the inputs come with their share dropped.

    Examples
    --------
    >>> Readout(6, 4, 3, dropout=0.0)(torch.zeros(2, 6)).shape
    torch.Size([2, 3])
    """

    def __init__(
        self,
        n_inputs: int,
        n_units: int,
        n_classes: int,
        dropout: float,
        drops_inputs: bool = True,
    ) -> None:
        super().__init__()
        self.first = nn.Linear(n_inputs, n_units)
        self.second = nn.Linear(n_units, n_classes)
        self.dropout, self.drops_inputs = dropout, drops_inputs

    def forward(self, H: Tensor) -> Tensor:
        """Return logits of shape `(n_items, n_classes)`; no ReLU on them."""
        # the supplement of the paper puts a ReLU there; its authors' code does not
        H = drop(H, self.dropout, self.training and self.drops_inputs)
        H = rectify_and_drop(self.first(H), self.dropout, self.training)
        return self.second(H)

    def penalty(self) -> Tensor:
        """Return the sum of squared weights of the first layer."""
        return self.first.weight.square().sum()


def ordinal_log_probabilities(logits: Tensor) -> Tensor:
    r"""Return log-probabilities of ordered classes (CORN, Shi et al. 2023).

    Logit k tells whether a scan that has reached stage k is beyond it. With
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

    Examples
    --------
    >>> ordinal_log_probabilities(torch.zeros(1, 2)).exp().tolist()
    [[0.5, 0.25, 0.25]]
    """
    beyond = nn.functional.logsigmoid(logits).cumsum(1)
    reached = nn.functional.pad(beyond, (1, 0))
    stays = nn.functional.pad(nn.functional.logsigmoid(-logits), (0, 1))
    return reached + stays
