"""Dropout, alone and in one pass with the rectifying before it."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def drop(x: Tensor, rate: float, training: bool) -> Tensor:
    """Set a random share of the entries to 0, and scale up the rest to match.

    Torch's own dropout draws a number for every entry, a seventh of an epoch here;
    a random byte, or a few bits of it, is enough. The rate is rounded to 1/256 and the
    rest scaled to it.

    Parameters
    ----------
    x : Tensor
    rate : float
        Share to drop, below 1.
    training : bool
        Without it nothing is dropped.

    Returns
    -------
    Tensor
        Of the shape of `x`.

    Examples
    --------
    >>> kept = drop(torch.ones(1000), 0.25, training=True)
    >>> sorted(set(kept.tolist())) == [0.0, 1.3333333730697632]
    True
    """
    level = round(rate * 256)
    if not training or level == 0:
        return x
    return x * _kept(x, level)


def rectify_and_drop(x: Tensor, rate: float, training: bool) -> Tensor:
    """Return `drop(relu(x), rate, training)` in the memory of `x`.

    One pass less each way over the largest arrays of an epoch.

    Parameters
    ----------
    x : Tensor
        Overwritten: fresh from a linear map, needed by nobody else.
    rate : float
        Share to drop, below 1.
    training : bool
        Without it nothing is dropped.

    Returns
    -------
    Tensor
        Of the shape of `x`.

    Examples
    --------
    >>> rectify_and_drop(torch.tensor([-1.0, 2.0]), 0.5, training=False).tolist()
    [0.0, 2.0]
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
