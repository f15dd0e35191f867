"""Reliable, doubtful or unusable: the outcome of a stay under a policy that decides throughout."""

from dataclasses import dataclass

from etips.evaluation.verdict import Label, Rule, Verdict


@dataclass(frozen=True)
class StayDiagnosis:
    """How far a log can speak of a policy that decides throughout.

    Args:
        n_stays: Stays with a decision.
        effective_stays: What the ratios are worth in stays, at the last decision they correct.
        effective_events: The same times the share of the rarer outcome; None for amounts.
        heaviest_stay: Share of the ratios that the heaviest stay or patient has there.
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
)  # fmt: skip


def judge_stays(diagnosis: StayDiagnosis, *, rules: tuple[Rule, ...] = STAY_RULES) -> Verdict:
    """The worst label of any rule, with the reason of each rule that is not content."""
    numbers = {
        "effective_stays": diagnosis.effective_stays,
        "effective_events": diagnosis.effective_events,
        "uncorrected_share": diagnosis.uncorrected_share,
        "capped_share": diagnosis.capped_share,
        "heaviest_stay": diagnosis.heaviest_stay,
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
