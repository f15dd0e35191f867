"""What a learner learned."""

from dataclasses import dataclass
from typing import NamedTuple

from etips.choice_record import ChoiceRecord
from etips.learn.fitting.candidates import Candidate
from etips.learn.nuisance.outcome import FittedOutcome
from etips.learn.nuisance.propensity import FittedPropensity, Quality
from etips.policies.policy import FittedPolicy


class SelectedRisk(NamedTuple):
    """What choosing comes to on patients that it did not look at.

    Args:
        risk: Each fold judged by the candidate that the other folds choose.
        std_error: Of that, by patient.
        naive: Risk of the chosen candidate, the luckiest of all.
    """

    risk: float
    std_error: float
    naive: float


@dataclass(frozen=True, eq=False)
class Fit:
    """What a learner learned; its attributes that end in an underscore are taken from here.

    Args:
        policy: What it recommends.
        propensity: Networks that imitate the clinicians; None if it fits none.
        outcome: Networks that predict losses; None if it fits none.
        path: Every candidate it chose from; empty if it compares none.
        quality: How well the propensities fit; None if it fits none.
        support: Least propensity of a recommended action; None if it has no such floor.
        whole_stay: The outcome of held-out stays in which a policy that looks that far decides for
            as long as the log can tell, and the clinicians afterwards; None of any other policy.
        clipped_share: Share of decisions whose propensity was raised; None if it weighs none.
        choice: What a super learner tried and kept; None of any other learner.
    """

    policy: FittedPolicy
    propensity: FittedPropensity | None = None
    outcome: FittedOutcome | None = None
    path: tuple[Candidate, ...] = ()
    quality: Quality | None = None
    support: float | None = None
    clipped_share: float | None = None
    whole_stay: Candidate | None = None
    choice: ChoiceRecord | None = None

    @property
    def selected_risk(self) -> SelectedRisk | None:
        """Risk of what was chosen, corrected for choosing; None without folds or candidates."""
        chosen = next((candidate for candidate in self.path if candidate.chosen), None)
        if chosen is None or chosen.corrected is None or chosen.corrected_error is None:
            return None
        return SelectedRisk(chosen.corrected, chosen.corrected_error, chosen.risk)
