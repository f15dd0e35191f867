"""Which translations train on: those within reach of the leader that lie nearest to the mean loss.

Translations are judged as they will be when one is chosen, by networks that did not learn from a
stay, and what has dropped out trains no further. See docs/method/learning.md, "Racing".
"""

from collections.abc import Callable, Sequence

from etips.learn.fitting.candidates import Judged
from etips.learn.learners.selection import CAUTION, gaps_to_clinicians, highest
from etips.learn.training.objectives import Objective
from etips.learn.training.race import Race
from etips.models.bundle import Bundle

REACH = 1.5
"""Standard errors, of the difference by patient, that a translation may lie behind the leader."""

HEATS = ((0.05, 10, 3, 2), (0.15, 30, 9, 1))
"""When translations are judged: after such a share of the epochs and so many learning steps at
least. And how many may go on: of so many one, but never fewer than so many."""


def race_between(
    translations: Sequence[float],
    set_size: int,
    judge: Callable[[Bundle, Sequence[int]], Judged],
    objective: Callable[[Sequence[int]], Objective],
    *,
    centre: float,
    epochs: int,
    n_batches: int,
) -> Race | None:
    """The race between translations; None where there is nothing to race for, or no time.

    Args:
        translations: One a set of networks.
        set_size: Networks a set.
        judge: What held-out stays say of the networks of some sets, in both forms.
        objective: What some sets minimise.
        centre: The mean loss.
        epochs: That are trained at most; there is no heat after the last.
        n_batches: Of an epoch.
    """
    n_sets = len(translations)
    heats = heat_epochs(n_sets, epochs, n_batches)
    if n_sets < 2 or not heats:
        return None

    def hold(networks: Bundle, sets: Sequence[int], epoch: int) -> list[int]:
        if len(sets) <= heats[epoch]:
            return list(sets)
        near = within_reach(judge(networks, sets), len(sets))
        nearest = sorted(near, key=lambda place: abs(translations[sets[place]] - centre))
        return [sets[place] for place in sorted(nearest[: heats[epoch]])]

    return Race(set_size, tuple(sorted(heats)), hold, objective)


def heat_epochs(n_sets: int, epochs: int, n_batches: int) -> dict[int, int]:
    """After how many epochs there are heats, and how many sets go on after each, at most."""
    heats = {}
    for share, steps, of, fewest in HEATS:
        epoch = max(round(share * epochs), -(-steps // n_batches), 1)
        if epoch < epochs:
            heats[epoch] = max(-(-n_sets // of), fewest)
    return heats


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
    evidence = judged.totals.evidence
    leader = evidence(next(iter(best.values())))
    behind = {own: evidence(place).minus(leader) for own, place in best.items()}
    return [own for own, gap in behind.items() if not gap.value > REACH * gap.std_error]
