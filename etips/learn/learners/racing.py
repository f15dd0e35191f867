"""Which translations train on: those whose held-out risk is within reach of the leader's.

Translations are judged as they will be when one is chosen, by networks that did not learn from a
stay, and what has fallen behind trains no further. See docs/method/learning.md, "Racing".
"""

from collections.abc import Callable, Sequence

from etips.learn.fitting.candidates import Judged
from etips.learn.learners.selection import CAUTION, gaps_to_clinicians, highest
from etips.learn.training.objectives import Objective
from etips.learn.training.race import Race
from etips.models.bundle import Bundle

REACH = 1.0
"""Standard errors, of the difference by patient, that a translation may lie behind the leader."""

HEATS = ((0.1, 3), (0.25, 9))
"""When sets are judged, as a share of the epochs, and of how many sets one goes on, at most."""


def race_between(
    n_sets: int,
    set_size: int,
    epochs: int,
    judge: Callable[[Bundle, Sequence[int]], Judged],
    objective: Callable[[Sequence[int]], Objective],
) -> Race | None:
    """The race between sets of networks; None where there is nothing to race for, or no time.

    Args:
        n_sets: How many sets there are.
        set_size: Networks a set.
        epochs: That are trained at most; there is no heat after the last.
        judge: What held-out stays say of the networks of some sets, by both forms.
        objective: What some sets minimise.
    """
    heats = {max(round(share * epochs), 1): -(-n_sets // of) for share, of in HEATS}
    heats = {epoch: most for epoch, most in heats.items() if epoch < epochs}
    if n_sets < 2 or not heats:
        return None

    def hold(networks: Bundle, sets: Sequence[int], epoch: int) -> list[int]:
        if len(sets) < 2:
            return list(sets)
        ahead = within_reach(judge(networks, sets), len(sets), most=heats[epoch])
        return [sets[place] for place in ahead]

    return Race(set_size, tuple(sorted(heats)), hold, objective)


def within_reach(judged: Judged, n_sets: int, *, most: int) -> list[int]:
    """Places of the sets that go on, ascending.

    A set stands by the better of its two forms: as in choosing, its risk less the clinicians' plus
    `CAUTION` standard errors. Whoever lies more than `REACH` standard errors behind the leader is
    out, and so are all but the best `most`. Where no set is fit to choose by, all go on.

    Args:
        judged: Sets in one form, then in the other, then others, the clinicians among them.
        n_sets: How many sets there are.
        most: That may go on.
    """
    gaps = gaps_to_clinicians(judged)
    best: dict[int, int] = {}  # place of each set's better form
    for place in sorted(
        (p for p in gaps if p < 2 * n_sets), key=lambda p: highest(gaps[p], CAUTION)
    ):
        best.setdefault(place % n_sets, place)
    if not best:
        return list(range(n_sets))
    leader, *_ = best.values()
    evidence = judged.totals.evidence
    behind = {own: evidence(place).minus(evidence(leader)) for own, place in best.items()}
    near = [own for own, gap in behind.items() if not gap.value > REACH * gap.std_error]
    return sorted(near[:most])
