"""Reliable, doubtful or unusable: the outcome of a stay under a policy that decides throughout."""

from dataclasses import dataclass

from etips.evaluation.diagnostics import Diagnostics
from etips.evaluation.verdict import RULES, Label, Rule, Verdict, judge


@dataclass(frozen=True)
class StayDiagnosis:
    """How far a log can speak of a policy that decides throughout.

    Args:
        n_stays: Stays with a decision.
        effective_stays: What the ratios are worth in stays, at the last decision they correct.
        effective_events: The same times the share of the rarer outcome; None for amounts.
        heaviest_stay: Share of the ratios that the heaviest stay or patient has there.
        ratio_error: How far the mean ratio is from 1 there, before the cap; 0 while chance may have
            done it.
        weight_shift: What ratios move predicted outcomes by that should not move, over half the
            width of the narrower interval; 0 while chance may have done it, None without a model.
        capped_share: Share of the ratios at the end of stays that the cap took off.
        uncorrected_share: Share of the logged decisions that come after the last corrected one.
        n_corrected: Decisions of a stay, from its first, that ratios correct.
        longest: Decisions of the longest stay.
        modelled: Whether there are predicted values to correct.
    """

    n_stays: int
    effective_stays: float
    effective_events: float | None
    heaviest_stay: float
    ratio_error: float
    weight_shift: float | None
    capped_share: float
    uncorrected_share: float
    n_corrected: int
    longest: int
    modelled: bool


STAY_RULES = (
    Rule(
        "effective_stays", 60, 10, "low",
        "Stays treated as the policy would treat them are worth only {value:.0f} stays.",
        "docs/method/whole-stay.md.",
        few="Stays treated as the policy would treat them are worth fewer than 11 stays.",
    ),
    Rule(
        "effective_events", 10, 2, "low",
        "They are worth only about {value:.0f} stays with the rarer outcome.",
        "As for one decision: a standard error needs events to rest on.",
        few="They are worth fewer than 11 stays with the rarer outcome.",
    ),
    Rule(
        "uncorrected_share", 0.01, 0.999, "high",
        "{value:.0%} of the decisions come so late that hardly a stay has followed the policy "
        "until then: for them the estimate rests on a model alone.",
        "What no ratio corrects, no interval knows.",
    ),
    Rule(
        "capped_share", 0.5, 0.99, "high",
        "{value:.0%} of the weight lay on so few stays that it was cut.",
        "docs/method/whole-stay.md.",
    ),
    Rule(
        "heaviest_stay", 0.1, 0.5, "high",
        "One stay carries {value:.0%} of the weight.",
        "As for one decision.",
    ),
    Rule(
        "ratio_error", 0.1, 0.9, "high",
        "The mean ratio is off from 1 by {value:.0%}, beyond chance: the propensities are wrong, "
        "or courses that the policy would often take are not in the log.",
        "As for one decision; over a stay small errors of propensities multiply.",
    ),
    Rule(
        "weight_shift", 0.3, 2, "high",
        "Stays weighed as the policy would treat them are unlike what the policy would meet, by "
        "{value:.1f} times half the interval's width: the propensities miss visible reasons for "
        "treatment.",
        "160 random worlds of 4 to 15 decisions, frequencies of actions for propensities: 27 to 39 "
        "% were reliable without this rule and the last, none with them.",
    ),
)  # fmt: skip

OF_ONE_DECISION = frozenset({"model_alone", "effective_events", "tail_reach", "propensity_error"})
"""Rules of one decision that whole stays leave out. Three look at the losses of single decisions or
at how those are estimated; the last at actions drawn evenly, which no ratio here is made of: in
ICU-Sepsis, where some actions are very rare, it made the clinicians themselves doubtful."""

INHERITED = tuple(rule for rule in RULES if rule.measure not in OF_ONE_DECISION)
"""Rules of one decision that hold for whole stays too: what is wrong with a weight is wrong with a
product of weights."""


def judge_stays(diagnosis: StayDiagnosis, *, rules: tuple[Rule, ...] = STAY_RULES) -> Verdict:
    """The worst label of any rule, with the reason of each rule that is not content."""
    numbers = {
        "effective_stays": diagnosis.effective_stays,
        "effective_events": diagnosis.effective_events,
        "uncorrected_share": diagnosis.uncorrected_share,
        "capped_share": diagnosis.capped_share,
        "heaviest_stay": diagnosis.heaviest_stay,
        "ratio_error": diagnosis.ratio_error,
        "weight_shift": diagnosis.weight_shift,
    }
    label: Label = "reliable"
    reasons = []
    for rule in rules:
        value = numbers[rule.measure]
        own: Label = "reliable" if value is None else rule.label(value)
        if value is None or own == "reliable":
            continue
        reasons.append(rule.tell(value))
        label = "unusable" if "unusable" in (own, label) else "doubtful"
    return Verdict(label, tuple(reasons))


def inherit(whole: Verdict, one_decision: Diagnostics) -> Verdict:
    """The verdict on whole stays, with what one decision says of the weights that they multiply.

    Args:
        whole: By the rules of whole stays.
        one_decision: How well the log supports the same policy at one decision.
    """
    weights = judge(one_decision, rules=INHERITED)
    label = max(whole.label, weights.label, key=("reliable", "doubtful", "unusable").index)
    told = tuple(f"At one decision: {reason}" for reason in weights.reasons)
    return Verdict(label, (*whole.reasons, *told), whole.caveat)
