"""One stay, decision by decision: what is recommended, why, for whom that was tried, what to ask.

It holds values of one patient's record only as attributions; whoever has it had the record.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from etips.data.decisions import Floats
from etips.data.schema import Schema
from etips.data.trajectories import Trajectories
from etips.errors import DataError
from etips.explanation.attribution import Attribution, attribute
from etips.explanation.measure_next import Measurement, wavers, what_to_measure
from etips.explanation.similar import Neighbourhood, SimilarDecisions, similar_decisions
from etips.policies.policy import Answer, FittedPolicy

_ASKED_FOR = 5  # measurements that are told of a decision


@dataclass(frozen=True, eq=False)
class DecisionExplanation:
    """One decision.

    Args:
        step: Counted from 0.
        label: What the data calls it.
        recommended: The action; what clinicians are taken to choose where the policy abstains.
        logged: The action that was taken; None where nobody knows.
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
        own = self.attribution
        told = None if own is None else own.to_json()
        if told is not None and own is not None:
            told["action"] = schema.action_name(own.action)
            told["against"] = schema.action_name(own.against)
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
            "measure_next": [one.to_json() for one in self.measure],
            "rule": self.rule,
        }


@dataclass(frozen=True, eq=False)
class StayExplanation:
    """One stay.

    Args:
        stay: What the data calls it.
        schema: Of the policy.
        decisions: One each, in order.
    """

    stay: str
    schema: Schema
    decisions: tuple[DecisionExplanation, ...]

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
    """Explain every decision of one stay.

    Args:
        policy: Fitted.
        stay: One stay.
        neighbours: A log to compare with, made ready; left out, nothing is said of others.
    """
    answer = policy.answer(stay)
    support = None if policy.propensity is None else policy.propensities(stay)
    advised = policy.recommend(answer)
    logged = stay.logged_action if stay.logged else None
    labels = _labels(stay)
    doubt = wavers(answer)
    rules = rules_met(policy, stay)
    decisions = []
    for place, step in enumerate(stay.decisions().step.tolist()):
        recommended = int(advised[place])
        taken = None if logged is None else int(logged[place])
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
                attribution=_attribution(policy, stay, step, recommended, taken, answer),
                similar=None if neighbours is None else similar_decisions(neighbours, stay, step),
                measure=_measure(neighbours, stay, step, bool(doubt[place])),
                rule=None if rules is None else rules[place],
            )
        )
    return StayExplanation(str(stay.stay.tolist()[0]), policy.schema, tuple(decisions))


def reads_features(policy: FittedPolicy) -> bool:
    """Whether networks or trees of a policy can be asked why."""
    return policy.propensity is not None and policy.kind not in ("constant", "uniform", "tree")


def _attribution(
    policy: FittedPolicy,
    stay: Trajectories,
    step: int,
    recommended: int,
    logged: int | None,
    answer: Answer,
) -> Attribution | None:
    if not reads_features(policy) or answer.probabilities.shape[1] < 2:
        return None
    against = logged if logged is not None and logged != recommended else None
    return attribute(policy, stay, step, recommended, against)


def _measure(
    neighbours: Neighbourhood | None, stay: Trajectories, step: int, doubt: bool
) -> tuple[Measurement, ...]:
    if neighbours is None or not doubt:
        return ()
    found = what_to_measure(neighbours, stay, step)
    return tuple(one for one in found if one.changes > 0)[:_ASKED_FOR]


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
