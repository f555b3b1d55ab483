r"""Every kernel as a short Chebyshev series, and its slope.

An expansion of degree m is a polynomial, so its rows can be written as
:math:`E_{pi} = \sum_n c_{pn} T_n(\lambda_i - 1)`, whatever its own polynomials are.
Those stay below 1 on the spectrum: terms below rounding are known, and left out.

The heat kernel's slope is :math:`-\lambda` times itself. An expansion's slope differs
from that by a remainder, because the series ends:

.. math::
   \frac{dE_{pi}}{ds_p} = -\lambda_i E_{pi} + r_p(\lambda_i)

Where the remainder is below rounding the kernel's sum serves for the slope; elsewhere
the slope's own series is summed.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from brainlsap.graph.bounds import choose_degree, polynomial_values
from brainlsap.graph.expansions import EXPANSIONS

# The exact kernel is interpolated to this error at the least: rounding of float64.
_EXACT = 1e-13
# Of what is left out, as a part of the working precision's rounding.
_BELOW_ROUNDING = 1 / 8


@dataclass(frozen=True, eq=False)
class Series:
    r"""A kernel at given scales, ready to be summed.

    Parameters
    ----------
    coefficients : Tensor of shape (n_rois, n_terms)
        Of the Chebyshev polynomials of degree 0 to n_terms - 1.
    slopes : Tensor of shape (n_rois, n_slope_terms)
        Of the slope with respect to scale, in the same polynomials.
    follows_eigenvalues : bool
        Whether the slope is :math:`-\lambda` times the kernel to rounding.
    """

    coefficients: Tensor
    slopes: Tensor
    follows_eigenvalues: bool


class Rewriting:
    """Turns a kernel's coefficients into those of Chebyshev polynomials.

    Parameters
    ----------
    kernel : {"exact", "chebyshev", "hermite", "laguerre"}
        How the heat kernel is made; `exact` is interpolated.
    degree : int or None
        Degree of the expansion; None for `exact`.
    span : float
        The paper's `b` (Chebyshev only).
    max_scale : float
        Largest scale that will be asked for (`exact` only).
    dtype : torch.dtype
        Precision of the sums to come: `exact` is interpolated to an eighth of its
        rounding, or 1e-13 (`exact` only).
    device : torch.device, optional
        Where the coefficients are wanted.

    Examples
    --------
    >>> rewriting = Rewriting("laguerre", degree=1)
    >>> c, slope = rewriting.coefficients(torch.tensor([1.0]))
    >>> c.numpy().round(12).tolist()  # 1/2 + (1 - lambda)/4
    [[0.5, -0.25]]
    """

    def __init__(
        self,
        kernel: str,
        degree: int | None = None,
        span: float = 2.0,
        max_scale: float = 0.0,
        dtype: torch.dtype = torch.float64,
        device: torch.device | None = None,
    ) -> None:
        self.kernel, self.span = kernel, span
        self._last: tuple[torch.dtype, Tensor, Series] | None = None
        if kernel == "exact":
            # interpolation errs twice as far as the series that it stands for
            error = max(_EXACT, _lost(dtype)) / 2
            degree = choose_degree("chebyshev", max_scale, error)
        self.order = int(degree or 0)
        angle = np.pi * (np.arange(self.order + 1) + 0.5) / (self.order + 1)
        cosines = np.cos(angle[:, None] * np.arange(self.order + 1))
        transform = cosines * 2 / (self.order + 1)
        transform[:, 0] /= 2
        self.nodes = torch.from_numpy(1.0 + np.cos(angle)).to(device)
        self.transform = torch.from_numpy(transform).to(device)
        if kernel != "exact":
            values = polynomial_values(EXPANSIONS[kernel], self.nodes, self.order, span)
            self.transform = values @ self.transform

    def coefficients(self, scale: Tensor) -> tuple[Tensor, Tensor]:
        """Return Chebyshev coefficients of the kernel and their slopes, float64.

        Parameters
        ----------
        scale : Tensor of shape (n_rois,)
            Heat scale of every region.

        Returns
        -------
        tuple of two Tensors of shape (n_rois, order + 1)
        """
        s = scale.detach().double()
        if self.kernel == "exact":
            c = torch.exp(-s[:, None] * self.nodes)
            dc = -self.nodes * c
        else:
            expansion = EXPANSIONS[self.kernel]
            c, dc = expansion.coefficients(s, self.order, self.span)
            if self.kernel == "chebyshev" and self.span == 2.0:
                return c, dc
        return c @ self.transform, dc @ self.transform

    def series(self, scale: Tensor, dtype: torch.dtype) -> Series:
        """Return the kernel's terms that count in a precision.

        Parameters
        ----------
        scale : Tensor of shape (n_rois,)
            Heat scale of every region.
        dtype : torch.dtype
            Of the sums to come.

        Returns
        -------
        Series
        """
        # layers and parts of an epoch ask for the same scales one after another
        wanted = scale.detach().double()
        if self._last is not None:
            last_dtype, last_scale, found = self._last
            if last_dtype == dtype and torch.equal(last_scale, wanted):
                return found
        c, dc = self.coefficients(wanted)
        left_out = _lost(dtype)
        remainder = torch.nn.functional.pad(dc, (0, 1)) + _times_eigenvalue(c)
        follows = float(remainder.abs().sum(1).amax()) <= max(left_out, 1e-15)
        kept, slopes = (_ended(one, left_out).to(dtype) for one in (c, dc))
        found = Series(kept, slopes, follows)
        self._last = dtype, wanted.clone(), found
        return found


def _lost(dtype: torch.dtype) -> float:
    """Return what may be left out of a sum in this precision."""
    return torch.finfo(dtype).eps * _BELOW_ROUNDING


def _ended(c: Tensor, left_out: float) -> Tensor:
    """Return a series without its last terms, as many as count for nothing."""
    # what is lost by ending after n terms, in the region where most is lost
    lost = c.abs().flip(1).cumsum(1).flip(1).amax(0)
    return c[:, : max(1, int((lost > left_out).sum()))]


def _times_eigenvalue(c: Tensor) -> Tensor:
    """Return the coefficients of lambda times a series: x T_n = (T_n-1 + T_n+1) / 2."""
    out = torch.nn.functional.pad(c, (0, 1))
    half = c / 2
    out[:, 1:] += half
    out[:, 1] += half[:, 0]
    out[:, : c.shape[1] - 1] += half[:, 1:]
    return out
