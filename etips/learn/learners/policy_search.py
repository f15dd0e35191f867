"""Policies of several aims, trained side by side, and the one that is chosen among them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from etips.data.decisions import Floats
from etips.learn.fitting.candidates import Candidate, Judged
from etips.learn.fitting.requests import Requests, TrainingRequest
from etips.learn.learners.aims import Aim, aims_objective
from etips.learn.learners.finishing import finish_of
from etips.learn.learners.fit import Fit
from etips.learn.learners.foundation import Foundation
from etips.learn.learners.judging import (
    FORMS,
    chosen_policy,
    chosen_set,
    follow_rule,
    judge_all,
    settle,
)
from etips.learn.learners.racing import Race
from etips.learn.learners.regression import Regression
from etips.learn.learners.selection import APART, Selection
from etips.learn.nuisance.outcome import FittedOutcome
from etips.learn.training.settings import Settings
from etips.models.bundle import Bundle


@dataclass(frozen=True, eq=False)
class PolicySearch:
    """A search for one policy among those of several aims.

    Args:
        base: What they stand on.
        aims: One a set of networks.
        start: Networks before they are trained, set by set.
        settings: How they are trained.
        kl: Weight of the KL divergence from the propensities.
        selection: How one is chosen.
        racing: Train one to the end that a heat has shown; False trains all of them.
        constants: Whether constant policies stand beside them.
        outcome: Predicted losses, which then judge policies too; None without.
        regression: That stands beside them; None without.
        finish: Let the chosen networks go on with all stays.
    """

    base: Foundation
    aims: Sequence[Aim]
    start: Bundle
    settings: Settings
    kl: float
    selection: Selection = "held-out"
    racing: bool = True
    constants: bool = True
    outcome: FittedOutcome | None = None
    regression: Regression | None = None
    finish: bool = True

    def run(self) -> Requests[Fit]:
        """Train, judge and choose."""
        everybody = range(len(self.aims))
        if self.racing:
            kinds = [aim.form if aim.form in APART else "" for aim in self.aims]
            race = Race(len(self.aims), self.request, self._judge, self._distances(), kinds)
            bundle, judged = yield from race.run()
        else:
            bundle = yield self.request(everybody)
            judged = self._judge(bundle, everybody)
        return (yield from self._settle(bundle, judged))

    def choose_among(self, bundle: Bundle) -> Requests[Fit]:
        """The policy that is chosen among networks that were trained before, set by set."""
        judged = self._judge(bundle, range(len(self.aims)))
        return (yield from self._settle(bundle, judged))

    def _settle(self, bundle: Bundle, judged: Judged) -> Requests[Fit]:
        path = settle(self.base, judged, self.selection)
        lower = self._with_lower_floor(bundle, path)
        if lower is None:
            return (yield from self._fit(bundle, path))
        # The lower floor is the networks' alone: they have shown its worth, others have not. Nor
        # is it a reason to keep another: with rare actions networks only have larger errors.
        own = lower._judge(bundle, range(len(self.aims)))
        both = judged.with_others(range(len(FORMS) * len(self.aims)), own)
        anew = settle(self.base, both, self.selection)
        if chosen_set(anew, len(self.aims)) is None:
            return (yield from self._fit(bundle, path))
        return (yield from lower._fit(bundle, anew))

    def _with_lower_floor(self, bundle: Bundle, path: Sequence[Candidate]) -> "PolicySearch | None":
        """The same on the lowest floor if the chosen networks are better for it."""
        number = chosen_set(path, len(self.aims))
        if number is None:
            return None
        networks, winner = self._networks_of(bundle, number), next(c for c in path if c.chosen)
        acts = "likeliest" if self.selection == "paper" else winner.acts
        base = self.base.lowered(lambda bases: follow_rule(bases, networks, acts))
        return None if base is self.base else replace(self, base=base)

    def _fit(self, bundle: Bundle, path: tuple[Candidate, ...]) -> Requests[Fit]:
        """What the chosen candidate comes to."""
        base, number = self.base, chosen_set(path, len(self.aims))
        networks = None if number is None else (yield from self._finish(bundle, number))
        policy = chosen_policy(base, path, networks, self.regression)
        if self.selection == "paper" and policy.kind == "softmax":
            policy = replace(policy, acts="likeliest")  # whatever its probabilities were chosen by
        return Fit(
            policy,
            propensity=base.propensity,
            outcome=self.outcome,
            path=path,
            quality=base.propensity.quality,
            support=policy.support,
            clipped_share=base.clipped_share,
            rebalanced=base.rebalanced,
        )

    def _networks_of(self, bundle: Bundle, number: int) -> Bundle:
        size = self.base.prepared.folds.n_networks
        return bundle.select(range(number * size, (number + 1) * size))

    def _finish(self, bundle: Bundle, number: int) -> Requests[Bundle]:
        """The networks of a set, which go on with all stays unless the paper's rule chose them."""
        chosen = self._networks_of(bundle, number)
        if self.selection == "paper" or not self.finish:
            return chosen
        request = finish_of(self.request([number]), chosen)
        return chosen if request is None else (yield request)

    def request(self, sets: Sequence[int]) -> TrainingRequest:
        """The training of some sets to the end."""
        size = self.base.prepared.folds.n_networks
        members = [number * size + fold for number in sets for fold in range(size)]
        own = [self.aims[number] for number in sets]
        return TrainingRequest(
            self.base.prepared,
            self.start.select(members),
            aims_objective(self.base, own, kl=self.kl, expected=self._predicted()),
            stage="policy",
            settings=self.settings,
        )

    def _judge(self, bundle: Bundle, sets: Sequence[int]) -> Judged:
        own = [self.aims[number] for number in sets]
        everybody = len(own) == len(self.aims)
        return judge_all(
            self.base,
            bundle,
            own,
            expected=self._predicted(),
            constants=self.constants and everybody,
            regression=self.regression if everybody else None,
        )

    def _predicted(self) -> Floats | None:
        """Predicted losses, whoever predicted them.

        They take noise out of held-out risks, and doubly robust policies learn from them.
        """
        by_regression = None if self.regression is None else self.regression.expected
        return by_regression if self.outcome is None else self.outcome.expected

    def _distances(self) -> list[float]:
        """How far each translation is from the mean loss; an aim that finds its own comes first."""
        centre = float(self.base.prepared.data.logged_loss.mean())
        return [
            -1.0 if math.isnan(aim.translation) else abs(aim.translation - centre)
            for aim in self.aims
        ]
