"""One stay, decision by decision: what is recommended, why, for whom that was tried, what to ask.

It holds values of one patient's record only as attributions; whoever has it had the record.
"""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from etips.data.decisions import Floats
from etips.data.schema import Schema
from etips.data.trajectories import Trajectories
from etips.errors import DataError
from etips.explanation.attribution import Attribution, attribute
from etips.explanation.measure_next import Measurement, wavers, what_to_measure
from etips.explanation.similar import Neighbourhood, SimilarDecisions, similar_decisions
from etips.policies.policy import FittedPolicy

_ASKED_FOR = 5  # measurements that are told of a decision


@dataclass(frozen=True, eq=False)
class DecisionExplanation:
    """One decision.

    Args:
        step: Counted from 0.
        label: What the data calls the step.
        recommended: The action; what clinicians are taken to choose where the policy abstains.
        logged: The action that was taken; None where that is not known.
        abstained: Whether no action has enough support.
        wavers: Whether it abstains, or its two likeliest actions are nearly alike.
        probabilities: Of each action, shape (K,).
        support: Propensity of each action as fitted, shape (K,); None where the policy has none.
        attribution: What speaks for the recommended action, against the logged one where they
            differ and otherwise against the next likeliest; None where the policy reads nothing.
        similar: Logged decisions that resemble it; None where there is no log to look at.
        measure: What to measure next, where the policy wavers.
        rule: The rule that applies, where the policy is made of rules.
    """

    step: int
    label: str
    recommended: int
    logged: int | None
    abstained: bool
    wavers: bool
    probabilities: Floats
    support: Floats | None
    attribution: Attribution | None
    similar: SimilarDecisions | None
    measure: tuple[Measurement, ...]
    rule: str | None = None

    def to_json(self, schema: Schema) -> dict[str, object]:
        """JSON-ready, with the actions' names."""
        told = None
        if self.attribution is not None:
            two = self.attribution.action, self.attribution.against
            names = dict(zip(("action", "against"), map(schema.action_name, two), strict=True))
            told = self.attribution.to_json() | names
        return {
            "step": self.label,
            "recommended": schema.action_name(self.recommended),
            "logged": None if self.logged is None else schema.action_name(self.logged),
            "abstained": self.abstained,
            "wavers": self.wavers,
            "probabilities": self.probabilities.tolist(),
            "support": None if self.support is None else self.support.tolist(),
            "attribution": told,
            "similar": None if self.similar is None else self.similar.to_json(schema),
            "measure_next": [asdict(one) for one in self.measure],
            "rule": self.rule,
        }


@dataclass(frozen=True, eq=False)
class StayExplanation:
    """One stay, by the name that the data gives it, and its decisions in order."""

    stay: str
    schema: Schema
    decisions: tuple[DecisionExplanation, ...]

    @property
    def unit(self) -> str:
        """What attributions are measured in."""
        units = [own.attribution.unit for own in self.decisions if own.attribution is not None]
        return units[0] if units else "none"

    def to_json(self) -> dict[str, object]:
        """JSON-ready."""
        return {
            "stay": self.stay,
            "actions": [self.schema.action_name(k) for k in range(self.schema.n_actions)],
            "decisions": [own.to_json(self.schema) for own in self.decisions],
        }


def find_stay(data: Trajectories, stay: object) -> Trajectories:
    """One stay by what the data calls it; numbers may be given as text."""
    names = data.stay.tolist()
    wanted = {stay, str(stay)}
    places = [number for number, name in enumerate(names) if name in wanted or str(name) in wanted]
    if not places:
        raise DataError("stay", "is not in the data", fix="Name it as the column of stays does.")
    return data.subset([places[0]])


def explain_stay(
    policy: FittedPolicy, stay: Trajectories, neighbours: Neighbourhood | None = None
) -> StayExplanation:
    """Explain every decision of one stay; without `neighbours` nothing is said of others."""
    answer = policy.answer(stay)
    support = None if policy.propensity is None else policy.propensities(stay)
    advised, doubt = policy.recommend(answer), wavers(answer)
    labels, rules = _labels(stay), rules_met(policy, stay)
    compares = reads_features(policy) and policy.schema.n_actions > 1
    decisions = []
    for place, step in enumerate(stay.decisions().step.tolist()):
        recommended = int(advised[place])
        taken = int(stay.logged_action[place]) if stay.logged else None
        against = taken if taken != recommended else None
        measure = []
        if neighbours is not None and doubt[place]:
            measure = [one for one in what_to_measure(neighbours, stay, step) if one.changes > 0]
        decisions.append(
            DecisionExplanation(
                step=step,
                label=labels[place],
                recommended=recommended,
                logged=taken,
                abstained=bool(answer.abstained[place]),
                wavers=bool(doubt[place]),
                probabilities=answer.probabilities[place],
                support=None if support is None else support[place],
                attribution=attribute(policy, stay, step, recommended, against)
                if compares
                else None,
                similar=None if neighbours is None else similar_decisions(neighbours, stay, step),
                measure=tuple(measure[:_ASKED_FOR]),
                rule=None if rules is None else rules[place],
            )
        )
    return StayExplanation(str(stay.stay.tolist()[0]), policy.schema, tuple(decisions))


def reads_features(policy: FittedPolicy) -> bool:
    """Whether networks or trees of a policy can be asked why."""
    return policy.propensity is not None and policy.kind not in ("constant", "uniform", "tree")


def rules_met(policy: FittedPolicy, stay: Trajectories) -> list[str] | None:
    """The rule that each decision meets; None where the policy is not made of rules."""
    if policy.tree is None:
        return None
    from_leaf = dict(zip(policy.tree.leaves, policy.tree.rules(policy.schema), strict=True))
    return [from_leaf[leaf] for leaf in policy.leaf_of(stay).tolist()]


def _labels(stay: Trajectories) -> list[str]:
    """The decisions' own step labels; past the end one more than the last, if it is a number."""
    steps: Any = stay.step
    labels = []
    for step in stay.decisions().step.tolist():
        if step < len(steps):
            labels.append(str(steps[step]))
        else:
            number = np.issubdtype(steps.dtype, np.number)
            labels.append(str(steps[-1] + 1) if number else "next")
    return labels
