"""One stay, decision by decision: what is recommended, why, for whom that was tried, what to ask.

It holds values of one patient's record only as attributions; whoever has it had the record.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from etips.data.decisions import Floats
from etips.data.schema import Schema
from etips.data.trajectories import Trajectories
from etips.disclosure import FEW
from etips.errors import DataError
from etips.explanation.attribution import Attribution, attribute
from etips.explanation.measure_next import Measurement, wavers, what_to_measure
from etips.explanation.preference import reads_features
from etips.explanation.similar import Neighbourhood, SimilarDecisions, similar_decisions
from etips.policies.policy import FittedPolicy

_MAX_MEASURED = 5  # measurements that are listed for a decision
_STRONGEST = 4  # columns that are named on either side, and actions of similar patients


@dataclass(frozen=True, eq=False)
class DecisionExplanation:
    """One decision, by what the data calls its step.

    Args:
        recommended: The action; what clinicians are taken to choose where the policy abstains.
        logged: The action that was taken; None where that is not known.
        abstained: Whether no action has enough support.
        wavers: Whether it abstains, or its two likeliest actions are nearly alike.
        probabilities: Of each action, shape (K,).
        support: Propensity of each action as fitted, shape (K,); None where the policy has none.
        attribution: Of the recommended action, against the logged one where they differ and
            otherwise against the next likeliest; None where the policy reads nothing.
        similar: None where there is no log to look at.
        measure: Where the policy wavers.
        rule: The one that applies, where the policy is made of rules.
    """

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
        why = self.attribution
        two = {} if why is None else {"action": why.action, "against": why.against}
        names = {role: schema.action_name(action) for role, action in two.items()}
        return {
            "step": self.label,
            "recommended": schema.action_name(self.recommended),
            "logged": None if self.logged is None else schema.action_name(self.logged),
            "abstained": self.abstained,
            "wavers": self.wavers,
            "probabilities": self.probabilities.tolist(),
            "support": None if self.support is None else self.support.tolist(),
            "attribution": None if why is None else why.to_json() | names,
            "similar": None if self.similar is None else self.similar.to_json(schema),
            "measure_next": [asdict(one) for one in self.measure],
            "rule": self.rule,
        }

    def lines(self, schema: Schema) -> Iterator[str]:
        """The decision in words."""
        chance, why = self.probabilities, self.attribution
        if self.abstained:
            words = "abstains: no action has enough support; wait, or do as clinicians do"
        else:
            advised = self.recommended
            words = f"recommends {schema.action_name(advised)} ({chance[advised]:.0%})"
            words += ", wavering" if self.wavers else ""
        if self.logged is not None:
            words += f"; logged {schema.action_name(self.logged)} ({chance[self.logged]:.0%})"
        yield f"step {self.label}: {words}"
        if self.rule is not None:
            yield f"  {self.rule}"
        if why is not None:
            pair = f"{schema.action_name(why.action)}, over {schema.action_name(why.against)}"
            sums = why.by_column()
            for word, sign in (("for", 1), ("against", -1)):
                strongest = {k: v for k, v in sums.items() if sign * v > 0}
                if strongest:
                    yield f"  {word} {pair}: {_signed(strongest, _STRONGEST)}"
            if why.groups:
                yield f"  by organ system: {_signed(why.by_group())}"
            if not why.complete:
                yield f"  sums are off by {why.completeness_error:.0%}: take them with care"
        if self.similar is not None:
            yield f"  {similar_words(self.similar, schema)}"
        if self.measure:
            yield f"  measure next: {'; '.join(measure_words(one) for one in self.measure)}"


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


def similar_words(own: SimilarDecisions, schema: Schema) -> str:
    """What was done for similar patients, in a sentence."""
    if own.people is None:
        return f"similar decisions: {FEW} people, so nothing is told of them"
    words = []
    for done in own.done[:_STRONGEST]:
        if done.share is not None:
            loss = "" if done.loss is None else f", mean loss {done.loss:.2f}"
            words.append(f"{schema.action_name(done.action)} {done.share:.0%}{loss}")
    return f"similar decisions: {own.people} people (effective); {'; '.join(words) or 'few alike'}"


def measure_words(own: Measurement) -> str:
    """What a measurement might change, in a few words."""
    age = "never measured" if own.age is None else f"not new for {own.age} steps"
    return f"{own.column} ({age}) would change the answer for {own.changes:.0%} of likely values"


def _signed(values: dict[str, float], most: int | None = None) -> str:
    return ", ".join(f"{name} {value:+.2g}" for name, value in list(values.items())[:most])


def find_stay(data: Trajectories, stay: object) -> Trajectories:
    """One stay by what the data calls it; numbers may be given as text."""
    wanted = {stay, str(stay)}
    for number, name in enumerate(data.stay.tolist()):
        if name in wanted or str(name) in wanted:
            return data.subset([number])
    raise DataError("stay", "is not in the data", fix="Name it as the column of stays does.")


def explain_stay(
    policy: FittedPolicy, stay: Trajectories, neighbours: Neighbourhood | None = None
) -> StayExplanation:
    """Explain every decision of one stay; without `neighbours` nothing is known of others."""
    answer = policy.answer(stay)
    support = None if policy.propensity is None else policy.propensities(stay)
    advised, doubt, rules = policy.recommend(answer), wavers(answer), rules_met(policy, stay)
    compares = reads_features(policy) and policy.schema.n_actions > 1
    decisions = []
    for place, step in enumerate(stay.decisions().step.tolist()):
        recommended = int(advised[place])
        taken = int(stay.logged_action[place]) if stay.logged else None
        why, similar, measure = None, None, []
        if compares:
            against = taken if taken != recommended else None
            why = attribute(policy, stay, step, recommended, against)
        if neighbours is not None:
            similar = similar_decisions(neighbours, stay, step)
        if neighbours is not None and doubt[place]:
            measure = [one for one in what_to_measure(neighbours, stay, step) if one.changes > 0]
        decisions.append(
            DecisionExplanation(
                label=_label(stay, step),
                recommended=recommended,
                logged=taken,
                abstained=bool(answer.abstained[place]),
                wavers=bool(doubt[place]),
                probabilities=answer.probabilities[place],
                support=None if support is None else support[place],
                attribution=why,
                similar=similar,
                measure=tuple(measure[:_MAX_MEASURED]),
                rule=None if rules is None else rules[place],
            )
        )
    return StayExplanation(str(stay.stay.tolist()[0]), policy.schema, tuple(decisions))


def rules_met(policy: FittedPolicy, stay: Trajectories) -> list[str] | None:
    """The rule that each decision meets; None where the policy is not made of rules."""
    if policy.tree is None:
        return None
    from_leaf = dict(zip(policy.tree.leaves, policy.tree.rules(policy.schema), strict=True))
    return [from_leaf[leaf] for leaf in policy.leaf_of(stay).tolist()]


def _label(stay: Trajectories, step: int) -> str:
    """What the data calls a step; past the end one more than the last, if it is a number."""
    steps: Any = stay.step
    if step < len(steps):
        return str(steps[step])
    return str(steps[-1] + 1) if np.issubdtype(steps.dtype, np.number) else "next"
