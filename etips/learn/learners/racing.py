"""Which translations are trained to the end: all run a heat, and one of its leaders goes on.

A heat is a short training of its own. Translations are judged after it as they will be when one is
chosen, by networks that did not learn from a stay. See docs/method/learning.md, "Racing".
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from etips.learn.fitting.candidates import Judged
from etips.learn.fitting.requests import Requests, TrainingRequest
from etips.learn.learners.selection import CAUTION, choose, gaps_to_clinicians, highest
from etips.learn.training.settings import Settings
from etips.models.bundle import Bundle, Trained

REACH = 2.5
"""Standard errors, of the difference by patient, that a translation may lie behind the leader."""

STEPS = 20
"""Learning steps of a heat: after fewer all are still the clinicians."""

LEAD = 1.0
"""Standard errors by which one that dropped out must lead what was chosen, to be called back."""

MOST_CALLED = 2
"""Of those that dropped out, how many may be called back."""

TIMES = 3
"""Times as long as a heat the training to the end must be, at least; else there is no heat."""


@dataclass(frozen=True, eq=False)
class Race:
    """Sets of networks, one a translation, of which one is wanted.

    Args:
        n_sets: How many.
        ask: Asks for the training of some sets from the start to the end.
        judge: What held-out stays say of networks: sets in one form, then in the other, then what
            stands beside them. It is told which sets these are.
        distance: Of each set's translation from the mean loss, shape (n_sets,); negative of a set
            that finds its own baseline.
        kinds: Of each set. One of the first kind goes on, and of any other kind the best, if it is
            ahead of that one. Left out, all are of one kind.
    """

    n_sets: int
    ask: Callable[[Sequence[int]], TrainingRequest]
    judge: Callable[[Bundle, Sequence[int]], Judged]
    distance: Sequence[float]
    kinds: Sequence[str] = ()

    def run(self) -> Requests[tuple[Bundle, Judged]]:
        """Networks of all sets, and what is said of them; the one to choose trained to the end."""
        everybody = range(self.n_sets)
        whole = self.ask(everybody)
        heat = heat_of(whole)
        if heat is None or self.n_sets < 2:
            bundle = yield whole
            return bundle, self.judge(bundle, everybody)
        networks = yield heat
        judged = self.judge(networks, everybody)
        standing = _Standing(_dropped(networks), _out(judged, self.n_sets), self.n_sets)
        these = self.leaders(judged)  # all at once: networks side by side learn faster
        for n_called in range(1 + MOST_CALLED):
            request = self.ask(these)
            if n_called:
                request = replace(request, stage=f"{request.stage}-back-{n_called}")
            networks = yield request
            standing = standing.with_sets(these, networks, self.judge(networks, these))
            if (missed := standing.missed()) is None:
                break
            these = [missed]
        return standing.bundle, standing.judged

    def leaders(self, judged: Judged) -> list[int]:
        """Of those within reach of the leader the nearest to the mean loss, of the first kind.

        One that finds its own baseline comes before them, within reach or not: after a heat it is
        behind large translations because it moves more slowly, not because it ends there. After it
        of every other kind the best, if it is ahead of that one.
        """
        best = standing_by(judged, self.n_sets)
        near = within_reach(judged, self.n_sets)
        kinds = self.kinds or [""] * self.n_sets
        usual = [own for own in near if kinds[own] == kinds[0]]
        if usual:
            usual += [own for own in best if kinds[own] == kinds[0] and self.distance[own] < 0]
        first = min(usual or near, key=lambda own: (self.distance[own], own))
        ahead = [own for own in best if first in best and best[own] < best[first]]
        others = [kind for kind in dict.fromkeys(kinds) if kind not in (kinds[0], kinds[first])]
        rest = ([own for own in ahead if kinds[own] == kind] for kind in others)
        return [first, *(min(own, key=lambda one: best[one]) for own in rest if own)]


@dataclass(frozen=True, eq=False)
class _Standing:
    """How sets stand, some after the heat and some trained to the end."""

    bundle: Bundle
    judged: Judged
    n_sets: int

    def with_sets(self, these: Sequence[int], networks: Bundle, judged: Judged) -> "_Standing":
        """The same with other networks of some sets, which come first in `judged`."""
        size, n_networks = networks.n_members // len(these), self.bundle.n_members
        order = list(range(n_networks))
        for place, number in enumerate(these):
            first = n_networks + place * size
            order[number * size : (number + 1) * size] = range(first, first + size)
        joined = Bundle.join([self.bundle, networks]).select(order)
        places = [*these, *(self.n_sets + number for number in these)]  # in both forms
        return _Standing(joined, self.judged.with_others(places, judged), self.n_sets)

    def missed(self) -> int | None:
        """Number of the set that should train on although it dropped out.

        It would be chosen as it stands, and either nothing that was trained to the end is, or what
        is lies behind it by `LEAD` standard errors.
        """
        judged = self.judged
        everybody = tuple(replace(own, in_race=True) for own in judged.candidates)
        place = choose(Judged(everybody, judged.totals), "held-out")
        if judged.candidates[place].in_race:
            return None
        chosen = choose(judged, "held-out")
        behind = highest(judged.totals.gap(place, chosen), LEAD) < 0
        if judged.candidates[chosen].is_rule and not behind:
            return None
        return place % self.n_sets


def heat_of(request: TrainingRequest) -> TrainingRequest | None:
    """The heat before a training; None where there is no time for one."""
    size = heat_size(request.settings, request.prepared.data.n_stays)
    if size is None:
        return None
    shorter = replace(request.settings, epochs=size[0])
    return replace(request, stage="heat", settings=shorter, n_batches=size[1])


def heat_size(settings: Settings, n_stays: int) -> tuple[int, int] | None:
    """Epochs of a heat and batches of each; None where there is no time for one.

    Args:
        settings: Of the training to the end.
        n_stays: That are learned from.
    """
    whole = -(-n_stays // settings.batch_size)
    epochs = -(-STEPS // whole)
    n_batches = -(-STEPS // epochs)
    if TIMES * epochs * n_batches > settings.epochs * whole:
        return None
    return epochs, n_batches


def _dropped(networks: Bundle) -> Bundle:
    """The same as networks that dropped out of the race."""
    ends = tuple(Trained(own.epochs, in_race=False) for own in networks.trained)
    return replace(networks, trained=ends)


def _out(judged: Judged, n_sets: int) -> Judged:
    """The same with all sets out of the race, so that none is chosen."""
    rules, others = judged.candidates[: 2 * n_sets], judged.candidates[2 * n_sets :]
    return Judged((*(replace(own, in_race=False) for own in rules), *others), judged.totals)


def standing_by(judged: Judged, n_sets: int) -> dict[int, float]:
    """By what each set that is fit to choose by stands: the better of its two forms."""
    gaps = gaps_to_clinicians(judged)
    stands: dict[int, float] = {}
    for place, gap in gaps.items():
        if place < 2 * n_sets:
            own = highest(gap, CAUTION)
            stands[place % n_sets] = min(own, stands.get(place % n_sets, own))
    return stands


def within_reach(judged: Judged, n_sets: int) -> list[int]:
    """Places of the sets that are within reach of the leader, best first.

    A set stands by the better of its two forms: as in choosing, its risk less the clinicians' plus
    `CAUTION` standard errors. Whoever lies more than `REACH` standard errors behind the leader is
    out, and so is who is not fit to choose by; where that is nobody, all are within reach.

    Args:
        judged: Sets in one form, then in the other, then others, the clinicians among them.
        n_sets: How many sets there are.
    """
    gaps = gaps_to_clinicians(judged)
    rules = [place for place in gaps if place < 2 * n_sets]
    best: dict[int, int] = {}  # place of each set's better form
    for place in sorted(rules, key=lambda own: highest(gaps[own], CAUTION)):
        best.setdefault(place % n_sets, place)
    if not best:
        return list(range(n_sets))
    leader = next(iter(best.values()))
    behind = {own: judged.totals.gap(place, leader) for own, place in best.items()}
    return [own for own, gap in behind.items() if not gap.value > REACH * gap.std_error]
