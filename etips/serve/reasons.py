"""Why a decision is advised: what speaks for it, who was like this, what to measure."""

from collections.abc import Sequence
from dataclasses import dataclass

from etips.data.trajectories import Trajectories
from etips.errors import DataError, EtipsError, SettingError
from etips.explanation.attribution import Attribution, attribute
from etips.explanation.measure_next import Measurement, what_to_measure
from etips.explanation.similar import Neighbourhood, SimilarDecisions, similar_decisions
from etips.explanation.stay_explanation import rules_met
from etips.policies.policy import FittedPolicy
from etips.serve.stay_view import StayView

MOST_BARS = 8
"""Columns that are shown to speak for or against."""

MOST_MEASURED = 4
_WORTH = 0.01  # share of likely values that must change the answer


@dataclass(frozen=True, eq=False)
class Why:
    """What speaks for the advised action.

    Args:
        said: The attribution; None where there is none.
        missing: Why there is none, or the rule that is met.
        against: Name of the action that it is held against.
    """

    said: Attribution | None
    missing: str
    against: str = ""

    @property
    def bars(self) -> list[tuple[str, float]]:
        """The strongest columns."""
        return [] if self.said is None else list(self.said.by_column().items())[:MOST_BARS]


def find_neighbours(policy: FittedPolicy, data: Trajectories) -> Neighbourhood | str:
    """The log made ready for similar decisions, or why that cannot be."""
    try:
        return Neighbourhood.of(policy, data)
    except EtipsError as error:
        return _reason(error)


def explain(view: StayView) -> Why:
    """What speaks for the advised action and against the logged one, or the next best."""
    if view.abstained:
        return Why(None, "The policy abstains here, so that there is no advice to explain.")
    rules = rules_met(view.advisor.policy, view.stay)
    if rules is not None:
        return Why(None, rules[view.at])
    advised, logged = view.advised, view.logged
    against = logged if logged is not None and logged != advised else None
    try:
        said = attribute(view.advisor.policy, view.stay, view.step, advised, against)
    except EtipsError as error:
        return Why(None, _reason(error))
    return Why(said, "", view.advisor.names[said.against])


def find_similar(neighbours: Neighbourhood, view: StayView) -> SimilarDecisions | None:
    """Logged decisions that resemble this one; None where they cannot be found."""
    try:
        return similar_decisions(neighbours, view.stay, view.step)
    except EtipsError:
        return None


def find_measurements(neighbours: Neighbourhood, view: StayView) -> Sequence[Measurement]:
    """What to measure next, if that may change the answer."""
    try:
        found = what_to_measure(neighbours, view.stay, view.step)
    except EtipsError:
        return ()
    return [own for own in found if own.changes >= _WORTH][:MOST_MEASURED]


def _reason(error: EtipsError) -> str:
    """A refusal as a sentence of the page; none of them holds a value."""
    if isinstance(error, SettingError | DataError):
        return " ".join(str(error).split())
    return "It cannot be explained."
