"""Risks of a policy by a log with a penalty on how they vary: POEM's, and self-normalised.

Both come in two forms that agree: a scalar over a whole log, for descent with all of it, and one
value a decision whose mean over a batch, and whose gradient, are those of the scalar on the batch.
"""

import torch
from torch import Tensor

LEAST_VARIANCE = 1e-12
"""Under the root, so that a variance of zero has a slope."""


def poem_risk(weight: Tensor, loss: Tensor, *, cap: float, penalty: float) -> Tensor:
    """Mean of the clipped weighted losses plus `penalty` times its standard error, shape ().

    Swaminathan and Joachims 2015, "Counterfactual risk minimization". Without a cap and a penalty
    it is the inverse propensity score.

    Args:
        weight: Policy probability over propensity of the logged action, shape (n,).
        loss: Shape (n,); no loss should be above zero, or the policy flees the log.
        cap: Weights above it count as it, and their gradient is lost.
        penalty: Weight of the standard error.
    """
    share = weight.clamp_max(cap) * loss
    if not penalty:
        return share.mean()
    error = (share.var(correction=0) / len(share) + LEAST_VARIANCE).sqrt()
    return share.mean() + penalty * error


def norm_poem_risk(weight: Tensor, loss: Tensor, *, cap: float, penalty: float) -> Tensor:
    """The self-normalised risk plus `penalty` times its standard error, shape ().

    Swaminathan and Joachims 2015, "The self-normalized estimator for counterfactual
    learning".

    Args:
        weight: As in `poem_risk`, like the rest.
        loss: Shape (n,); a constant added to it is added to the risk.
        cap: Likewise.
        penalty: Likewise.
    """
    clipped = weight.clamp_max(cap)
    total = clipped.sum()
    risk = (clipped * loss).sum() / total
    if not penalty:
        return risk
    error = ((clipped * (loss - risk)).square().sum() / total.square() + LEAST_VARIANCE).sqrt()
    return risk + penalty * error


def poem_values(weight: Tensor, loss: Tensor, *, cap: float, penalty: float, size: int) -> Tensor:
    """`poem_risk` as one value a decision of a batch, shape (J, n).

    The root of the variance is replaced by the parabola that touches it from above where the batch
    is, as the article does to learn from parts of a log.

    Args:
        weight: Shape (J, n).
        loss: Shape (n,).
        cap: As in `poem_risk`.
        penalty: As in `poem_risk`.
        size: Decisions of the whole log, whose standard error it is.
    """
    share = weight.clamp_max(cap) * loss
    if not penalty:
        return share
    mean = share.detach().mean(-1, keepdim=True)
    return share + penalty * _touching((share - mean).square(), size)


def norm_poem_values(
    weight: Tensor, loss: Tensor, *, cap: float, penalty: float, size: int
) -> Tensor:
    """`norm_poem_risk` as one value a decision of a batch, shape (J, n); see `poem_values`."""
    clipped = weight.clamp_max(cap)
    total = clipped.detach().mean(-1, keepdim=True).clamp_min(LEAST_VARIANCE)
    risk = (clipped.detach() * loss).mean(-1, keepdim=True) / total
    share = clipped * (loss - risk) / total
    if not penalty:
        return risk + share
    return risk + share + penalty * _touching(share.square(), size)


def _touching(square: Tensor, size: int) -> Tensor:
    """Values whose mean is the root of the mean square over that of `size`, from above."""
    root = (square.detach().mean(-1, keepdim=True) + LEAST_VARIANCE).sqrt()
    return (square / (2 * root) + root / 2) / torch.tensor(float(size)).sqrt()
