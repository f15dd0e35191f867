"""Which translations train on: those within reach of the leader that lie nearest to the mean loss.

Translations are judged as they will be when one is chosen, by networks that did not learn from a
stay, and what has dropped out trains no further. See docs/method/learning.md, "Racing".
"""

from collections.abc import Callable, Sequence

from etips.learn.fitting.candidates import Candidate, Judged
from etips.learn.learners.selection import CAUTION, gaps_to_clinicians, highest
from etips.learn.training.objectives import Objective
from etips.learn.training.race import Race
from etips.models.bundle import Bundle

REACH = 1.5
"""Standard errors, of the difference by patient, that a translation may lie behind the leader."""

SHARE, STEPS = 0.05, 20
"""Of the epochs, and learning steps at least, after which translations are judged: with fewer all
are still the clinicians."""

OF = 9
"""Of so many translations one goes on."""


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
    heats = heat_epochs(len(translations), epochs, n_batches)
    if len(translations) < 2 or not heats:
        return None

    def hold(networks: Bundle, sets: Sequence[int], epoch: int) -> list[int]:
        near = within_reach(judge(networks, sets), len(sets))
        nearest = sorted(near, key=lambda place: abs(translations[sets[place]] - centre))
        return [sets[place] for place in sorted(nearest[: heats[epoch]])]

    return Race(set_size, tuple(heats), hold, objective)


def heat_epochs(n_sets: int, epochs: int, n_batches: int) -> dict[int, int]:
    """After how many epochs there is a heat, and how many sets go on after it, at most."""
    heat = max(round(SHARE * epochs), -(-STEPS // n_batches), 1)
    return {heat: -(-n_sets // OF)} if heat < epochs else {}


def dropped_winner(path: Sequence[Candidate], n_sets: int) -> int | None:
    """Number of the set that is chosen although it dropped out, so that it has to train on.

    Args:
        path: Sets in one form, then in the other, then others; one of all is chosen.
        n_sets: How many sets there are.
    """
    place = next(i for i, candidate in enumerate(path) if candidate.chosen)
    return None if path[place].in_race else place % n_sets


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
