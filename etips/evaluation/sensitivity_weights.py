"""The extreme weights of the marginal sensitivity model, free or balanced.

A decision weighs `sure + open`: `sure` stands whatever is hidden, `open` may be multiplied or
divided by gamma. Where the policy takes an action with probability pi and the log with p, `sure` is
pi and `open` is `pi (1/p - 1)`; where it leaves the decision to the clinicians nothing is open.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from etips.evaluation.censoring import LossModel
from etips.evaluation.inference.checks import Floats, Ints
from etips.evaluation.inference.evidence import divide
from etips.evaluation.log import Log, View

MOST_STRATA = 20
PER_STRATUM = 40  # decisions' worth of open weight: fewer would fit a cut-off to noise


@dataclass(frozen=True)
class Extremes:
    """The decisions of one policy, ready for any gamma.

    Args:
        loss: Loss of the logged action, shape (n,).
        sure: Part of each weight that hidden confounding cannot change, shape (n,).
        open: The part that it can, shape (n,).
        stratum: For balanced weights, decisions that look alike, 0..s-1, shape (n,).
        count: For how many decisions each speaks where losses are missing, shape (n,).
    """

    loss: Floats
    sure: Floats
    open: Floats
    stratum: Ints | None = None
    count: Floats | None = None

    @property
    def weight(self) -> Floats:
        """The weights without confounding, shape (n,)."""
        return self.sure + self.open

    def reach(self, gamma: float, *, most: bool) -> tuple[Floats, Floats]:
        """Numerator and denominator of the greatest, or least, risk within `gamma`, (n,) each.

        Their totals' ratio is the bound. First-order, the cut-offs count as given: moving them
        changes the bound in second order only.
        """
        if self.stratum is None:
            weight = self._free(gamma, most=most)
            return self.loss * weight, weight
        return self._balanced(gamma, most=most), self.weight

    def _free(self, gamma: float, *, most: bool) -> Floats:
        """Weights with the extreme self-normalised risk (Zhao, Small and Bhattacharya 2019).

        At the optimum all losses above some value have one end of their range and all below it the
        other, so the best of the n+1 splits of the sorted losses is the answer.
        """
        order = self._falling
        small, large = (
            self._heard(self.sure + self.open * factor) for factor in (1 / gamma, gamma)
        )
        above, below = (large, small) if most else (small, large)
        total = _split_sums(above[order], below[order])
        losses = self.loss[order]
        ratio = divide(_split_sums(losses * above[order], losses * below[order]), total)
        if np.isnan(ratio).all():
            return self._heard(self.weight)
        split = int(np.nanargmax(ratio) if most else np.nanargmin(ratio))
        weight = below.copy()
        weight[order[:split]] = above[order[:split]]
        return weight

    def _balanced(self, gamma: float, *, most: bool) -> Floats:
        """Weighted losses under the extreme weights that keep each stratum's total (n,).

        The true weights have the nominal mean given whatever is visible. Of all weights that keep
        the total of a stratum those are extreme that are large for losses beyond one value, the
        quantile at gamma / (1 + gamma) of the open weight there (Dorn and Guo 2023).
        """
        assert self.stratum is not None
        sign = 1.0 if most else -1.0
        cut = self._cut_offs(1 / (1 + gamma), most=most)[self.stratum]
        excess = self.loss - cut
        factor = np.where(sign * excess > 0, gamma, 1 / gamma)
        return self.weight * cut + self._heard(self.sure + self.open * factor) * excess

    def _cut_offs(self, share: float, *, most: bool) -> Floats:
        """The loss beyond which `share` of each stratum's open weight lies, shape (s,)."""
        order, last = self._by_stratum
        if not most:
            share = 1 - share  # of the losses above it, sorted downwards as they are
        cumulated = np.cumsum(self._heard(self.open)[order])
        end = cumulated[last]
        start = np.concatenate([[0.0], end[:-1]])
        place = np.searchsorted(cumulated, start + share * (end - start))
        first = np.concatenate([[0], last[:-1] + 1])
        cut_offs: Floats = self.loss[order[np.clip(place, first, last)]]
        return cut_offs

    def _heard(self, weight: Floats) -> Floats:
        return weight if self.count is None else weight * self.count

    @cached_property
    def _falling(self) -> Ints:
        return np.argsort(-self.loss, kind="stable")

    @cached_property
    def _by_stratum(self) -> tuple[Ints, Ints]:
        """Decisions by stratum, then by falling loss, and where each stratum ends."""
        assert self.stratum is not None
        order = np.lexsort((-self.loss, self.stratum))
        return order, np.cumsum(np.bincount(self.stratum)) - 1


def extremes(
    log: Log, policy: View, *, expected: Floats | None, losses: LossModel | None = None
) -> Extremes:
    """What hidden confounding can do to the weights of `policy`.

    Nothing where it abstains. A policy that has the clinicians' own probabilities is read as
    abstaining (see `view`); to draw from them without knowing what the clinicians knew would be
    another policy, which a log without hidden states cannot tell from theirs.

    Args:
        log: The decisions.
        policy: The policy, seen through them.
        expected: Loss to expect at each decision, made without it, shape (n,): weights are then
            balanced among decisions that expect alike. None leaves them free.
        losses: Where the log's losses are stand-ins, the losses themselves.
    """
    same = np.zeros(log.n_decisions, bool) if policy.abstains is None else policy.abstains
    probability = policy.weight * log.propensity
    sure = np.where(same, policy.weight, probability)
    open_ = np.where(same, 0.0, np.maximum(policy.weight - probability, 0.0))
    stratum = None if expected is None else strata(expected, open_)
    if losses is None:
        return Extremes(log.loss, sure, open_, stratum)
    return Extremes(losses.loss, sure, open_, stratum, losses.observed / losses.chance)


def strata(expected: Floats, mass: Floats) -> Ints:
    """Numbers 0..s-1 of bands of `expected` with about equal `mass`, shape (n,).

    Args:
        expected: What decisions are sorted by, shape (n,).
        mass: How much each counts, shape (n,).
    """
    squares = float((mass**2).sum())
    size = float(mass.sum()) ** 2 / squares if squares > 0 else 0.0
    n_bands = int(np.clip(size / PER_STRATUM, 1, MOST_STRATA))
    order = np.argsort(expected, kind="stable")
    cumulated = np.cumsum(mass[order])
    places = np.searchsorted(cumulated, cumulated[-1] * np.arange(1, n_bands) / n_bands)
    edges = np.unique(expected[order[places]])
    band = np.searchsorted(edges, expected, side="left")
    return np.unique(band, return_inverse=True)[1].astype(np.int64)


def _split_sums(above: Floats, below: Floats) -> Floats:
    """Sum of the first j of `above` and the rest of `below`, for j = 0..n, shape (n+1,)."""
    sums = np.empty(above.size + 1)
    sums[0] = below.sum()
    np.cumsum(above - below, out=sums[1:])
    sums[1:] += sums[0]
    return sums
