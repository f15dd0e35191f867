"""Reliable, doubtful or unusable, with the reasons in plain words."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from etips.disclosure import rounds_to_few
from etips.evaluation.diagnostics import (
    WITHOUT_MODEL,
    Diagnostics,
    PrognosisBalance,
    PrognosisBalances,
)
from etips.evaluation.inference.estimate import Contrast, Estimate
from etips.evaluation.inference.evidence import Evidence, ratio_of
from etips.evaluation.log import Log, View
from etips.evaluation.prognosis import Expected

Label = Literal["reliable", "doubtful", "unusable"]
ORDER: tuple[Label, ...] = ("reliable", "doubtful", "unusable")

CROWDED = 10.0
"""How much commoner a rare outcome may be where weights are heavy than in the whole log."""

CAVEAT = (
    "No check on the log can see what the clinicians knew and the log does not; "
    "see the sensitivity bounds."
)


@dataclass(frozen=True)
class Rule:
    """One threshold of the verdict.

    Args:
        reason: What a reader is told; {value} is filled in.
        because: Where the thresholds come from.
        few: What they are told of a value under 11, if it is near a count of people.
    """

    measure: str
    doubtful: float
    unusable: float
    bad: Literal["low", "high"]
    reason: str
    because: str
    few: str = ""

    def label(self, value: float) -> Label:
        """The label that `value` alone would give; NaN is unusable."""
        sign = 1 if self.bad == "high" else -1
        if not sign * value < sign * self.unusable:
            return "unusable"
        return "doubtful" if not sign * value < sign * self.doubtful else "reliable"

    def tell(self, value: float) -> str:
        """The reason; with equal weights an effective number is a count, so few are not told."""
        if self.few and rounds_to_few(value):
            return self.few
        return self.reason.format(value=value)


CHANCE = 2.6
"""Standard errors of a mean weight that are put down to chance: about one in a hundred."""

IMBALANCE = 2.2
"""Standard errors from which a prognosis is taken to be out of balance: about one in forty. The
size must count too, see `RULES`."""

GRAVE = 5.0
"""Standard errors that an imbalance needs to make an estimate unusable."""

NEVER = math.inf

RULES = (
    Rule(
        "unchecked", 1, NEVER, "high",
        "The log holds neither what was visible at a decision nor propensities known by design, so "
        "nobody can tell whether weighted patients are like all patients: give it the features, or "
        "say that the propensities are known.",
        "Propensities that ignore the confounder pass every other rule: intervals of constant "
        "policies then covered 12 to 36 %.",
    ),
    Rule(
        "stays_per_reason", 5, 0, "low",
        "There are only {value:.1f} stays for each different thing that was visible: too few to "
        "tell whether the propensities miss a reason for treatment.",
        "120 columns that each confound a little, 300 stays: a model that sees nothing looked "
        "balanced, 10 of 10 estimates were reliable and 2 covered. At 1,000 stays none was.",
    ),
    Rule(
        "own_step_hidden", 1, NEVER, "high",
        "Histories end a step before the decision (lag 1), and the clinicians saw that step: the "
        "propensities may miss what they acted on.",
        "ICU-Sepsis at lag 1: the estimate was 0.42 where the truth was 0.50.",
    ),
    Rule(
        "model_alone", 1, NEVER, "high",
        "The headline is the word of a model, and its interval leaves out the model's own error.",
        "With a model of noise 75 % of null worlds were called better.",
    ),
    Rule(
        "prognosis_shift", 0.3, 2, "high",
        "Weighted patients are unlike all patients in what was to be expected of them, by "
        "{value:.1f} times half the interval's width: the propensities miss visible reasons for "
        "treatment.",
        "A bias of 0.3 half-widths leaves a 95 % interval with a coverage of 91 %.",
    ),
    Rule(
        "moved", 0.5, NEVER, "high",
        "The propensities of the network alone miss visible reasons for treatment; stacking models "
        "moved the estimate by {value:.1f} times half the interval's width, and part of that may "
        "be left.",
        "Where steps in two features confound, a quarter to a half was left: intervals moved by "
        "about a half-width and more covered 75 to 83 %.",
    ),
    Rule(
        "shift_before", 0.15, NEVER, "high",
        "By the network alone weighted patients are unlike all patients in what was to be expected "
        "of them, by {value:.1f} times half the interval's width; what the prognosis does not show "
        "of it may be left, whatever models are stacked.",
        "A stack that fits the prognosis hides what the prognosis misses: with a ring in two "
        "features or a code of 25 levels, 400 stays, 57 of 60 were reliable without this, and 19 "
        "covered.",
    ),
    Rule(
        "rests_on_model", 1, NEVER, "high",
        "The weights leave the expected loss off by {value:.1f} times half the interval's width; "
        "the predicted losses make up for it, but their own error is not in the interval.",
        "Marginal propensities with a right outcome model: unbiased, and covered 67 to 75 %.",
    ),
    Rule(
        "selection", 1, NEVER, "high",
        "Those who got one of the actions were unlike what the propensities lead to expect, by "
        "{value:.1f} times half the interval's width: the propensities miss visible reasons for "
        "treatment.",
        "Where a wrong model happens to do no harm to one policy it was called reliable 3 to 20 % "
        "of the time; this is about the model, whatever the policy.",
    ),
    Rule(
        "effective_clusters", 30, 10, "low",
        "The evidence is worth only {value:.0f} stays.",
        "docs/method/coverage.md, overlap 0.1: with 20 to 30 of them coverage is 87 to 94 %.",
        few="The evidence is worth fewer than 11 stays.",
    ),
    Rule(
        "expected_clusters", 20, 5, "low",
        "Over all actions the evidence can be worth only {value:.0f} stays.",
        "A lucky sample can look better than it is: under 5 of them 86 to 88 % cover, from 10 on "
        "93 and more.",
        few="Over all actions the evidence can be worth fewer than 11 stays.",
    ),
    Rule(
        "effective_events", 5, 1, "low",
        "The evidence is worth only about {value:.0f} stays with the rarer outcome.",
        "Counts' limits hold with fewer (16 null worlds, 2 to 27 of them: 0 to 4 % false gains, 93 "
        "to 99 % of risks covered), but they are then too wide to tell much.",
        few="The evidence is worth fewer than 11 stays with the rarer outcome.",
    ),
    Rule(
        "tail", 0.25, 0.6, "high",
        "{value:.0%} of the policy's choices hang on about five decisions.",
        "Five heavy decisions may all be missing from a log, and their choices with them: 89 % "
        "cover from 0.3 on, 80 from 0.5 on.",
    ),
    Rule(
        "tail_reach", 2.5, NEVER, "high",
        "The choices that hang on about five decisions could move the risk by {value:.1f} times "
        "half the width that such a log's interval is expected to have.",
        "A sample that lacks them looks certain: 81 % of those intervals covered from 3 on. Held "
        "against the sample's own width, or with a count of its own matched events, the rule chose "
        "lucky samples: of what it let pass 74 to 82 % covered, where 96 to 97 did without it.",
    ),
    Rule(
        "heaviest_cluster", 0.1, 0.5, "high",
        "One stay carries {value:.0%} of the weight.",
        "A tenth in one stay: leaving it out moves the risk by up to 0.1.",
    ),
    Rule(
        "matching_error", 0.1, 0.5, "high",
        "The matching factor is off from 1 by {value:.0%}, beyond chance: the propensities are "
        "wrong, or the policy does what the log does not hold.",
        "Its expectation is 1 whatever the policy; SNIPS hides the deficit, IPS and DR do not.",
    ),
    Rule(
        "propensity_error", 0.1, 0.5, "high",
        "Weights for drawing actions evenly are off from 1 by {value:.0%}, beyond chance: the "
        "propensities are wrong, or some actions are too rare for a log of this size.",
        "The same check for a policy that uses every action.",
    ),
    Rule(
        "misplaced", 0.1, 0.5, "high",
        "{value:.0%} of the weight lies on the wrong actions or patients, beyond chance.",
        "The matching factor, action by action and by quarter of its stated propensity.",
    ),
    Rule(
        "calibration_gap", 0.05, 0.2, "high",
        "Stated propensities miss what was done by {value:.0%} in part of their range.",
        "0.05 on a propensity of 0.2 changes a weight by a quarter.",
    ),
    Rule(
        "action_gap", 0.2, 0.8, "high",
        "An action was taken more or less often than stated, by {value:.0%} of the larger share.",
        "A fifth of a propensity is a fifth of a weight. Pooled calibration passes a uniform table "
        "whatever is done.",
    ),
    Rule(
        "excess_log_loss", 0.01, 1, "high",
        "The propensities foretell what was done worse than the plain frequencies of the actions, "
        "by {value:.3f} nats.",
        "A model that knows less than the frequencies has learned noise.",
    ),
    Rule(
        "lost", 0.05, 0.3, "high",
        "{value:.0%} of the policy's choices are lost: clinicians never made them, or so rarely "
        "that the floor under the propensities takes their weight.",
        "What is not in the log cannot be estimated from it; the risk is off by up to that share.",
    ),
    Rule(
        "clipped_share", 0.05, 0.3, "high",
        "{value:.0%} of the propensities were raised to the floor.",
        "Each raised propensity biases the risk towards the decisions that were not raised.",
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Verdict:
    """A label with its reasons; `caveat` holds for every label."""

    label: Label
    reasons: tuple[str, ...]
    caveat: str = CAVEAT


def judge(diagnostics: Diagnostics, *, rules: tuple[Rule, ...] = RULES) -> Verdict:
    """The worst label of any rule, with the reason of each rule that is not content."""
    return judge_by(rules, measures(diagnostics))


def judge_by(rules: tuple[Rule, ...], numbers: Mapping[str, float | None]) -> Verdict:
    """The same from the numbers themselves; None where the log lacks what it takes."""
    label: Label = "reliable"
    reasons = []
    for rule in rules:
        value = numbers[rule.measure]
        given: Label = "reliable" if value is None else rule.label(value)
        if value is None or given == "reliable":
            continue
        reasons.append(rule.tell(value))
        label = "unusable" if "unusable" in (given, label) else "doubtful"
    return Verdict(label, tuple(reasons))


def measures(diagnostics: Diagnostics) -> dict[str, float | None]:
    """The numbers that `Rule.measure` may name; None where the log lacks what it takes."""
    d, expected, stated = diagnostics, diagnostics.expected, diagnostics.calibration
    return {
        "unchecked": float(not d.visible and not d.known),
        "stays_per_reason": None if d.known or not d.breadth else d.n_clusters / d.breadth,
        "own_step_hidden": float(d.lag == 1 and not d.known),
        "model_alone": float(d.headline == "dm"),
        "prognosis_shift": _shift(d.prognosis),
        "rests_on_model": None if not d.prognosis or not d.prognosis.rest else _plain(d.prognosis),
        "moved": d.moved,
        "shift_before": _shift(d.prognosis_before),
        "selection": None if d.prognosis is None else d.prognosis.selection,
        "effective_clusters": d.effective_clusters,
        "expected_clusters": None if expected is None else expected.clusters,
        "effective_events": d.effective_events,
        "tail": None if expected is None else expected.tail,
        "tail_reach": _reach(d),
        "heaviest_cluster": d.heaviest_cluster,
        "matching_error": _off(d.matching_factor, None if expected is None else expected.std_error),
        "propensity_error": _off(d.uniform_factor, d.even_error),
        "misplaced": d.misplaced,
        "calibration_gap": None if stated is None else stated.gap,
        "action_gap": None if stated is None else stated.action_gap,
        "excess_log_loss": None if stated is None else stated.excess,
        "lost": None if expected is None else max(0.0, 1 - expected.mean),
        "clipped_share": d.clipped_share,
    }


def _reach(diagnostics: Diagnostics) -> float | None:
    """What losses of 0 or 1 in the tail could do, over the half-width that is to be expected.

    From all logged losses and the weights of all actions, not from the losses that were weighted.
    The rarer outcome is taken to be up to `CROWDED` times as common in the tail as in the log.
    """
    d = diagnostics
    if d.expected is None or d.weighted_events is None or not d.logged_spread > 0:
        return None
    rarer = (1 - math.sqrt(max(1 - 4 * d.logged_spread**2, 0.0))) / 2
    worst = min(CROWDED * rarer, 1.0)
    return worst * d.expected.tail * math.sqrt(d.expected.clusters) / (2 * d.logged_spread)


def _off(factor: Estimate, expected_error: float | None) -> float:
    """How far a mean weight is from 1; 0 while chance may have done it.

    Chance is what the propensities of all actions lead to expect, where they are there: the
    sample's own spread is too small whenever the heavy weights happened not to occur.
    """
    distance = abs(factor.risk - 1)
    error = factor.std_error if expected_error is None else expected_error
    return 0.0 if distance <= CHANCE * error else distance


def _shift(balances: PrognosisBalances | None) -> float | None:
    """The largest imbalance that biases the headline, over the half-width it is held against."""
    if balances is None:
        return None
    if balances.rest is not None and balances.rest_by_action is not None:
        return max(_beyond_chance(balances.rest), _beyond_chance(balances.rest_by_action))
    return _plain(balances)


def _plain(balances: PrognosisBalances) -> float:
    """The imbalance before predicted losses make up for any of it."""
    return max(_beyond_chance(balances.plain), _beyond_chance(balances.by_action))


def _beyond_chance(balance: PrognosisBalance) -> float:
    most = math.inf if abs(balance.z) > GRAVE else 1.99
    return min(balance.half_width_share, most) if abs(balance.z) > IMBALANCE else 0.0


def beyond_chance(size: float, error: float, half_width: float) -> float:
    """The share of a half-width, or 0 for chance; short of unusable unless it is certain."""
    if not size > IMBALANCE * error:
        return 0.0
    most = math.inf if size > GRAVE * error else 1.99
    return min(size / half_width, most) if half_width > 0 else most


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


def inherit(whole: Verdict, one_decision: Diagnostics) -> Verdict:
    """The verdict on whole stays, with what one decision says of the weights that they multiply."""
    weights = judge(one_decision, rules=INHERITED)
    label = max(whole.label, weights.label, key=ORDER.index)
    told = tuple(f"At one decision: {reason}" for reason in weights.reasons)
    return Verdict(label, (*whole.reasons, *told), whole.caveat)


SHIFT, GRAVE_SHIFT = 0.3, 2.0
"""Half-widths by which weighted patients may differ; as in the verdict's rule on the prognosis."""


def join_verdicts(parts: Mapping[str, Verdict], more: Verdict | None = None) -> Verdict:
    """That of a difference: no better than the worse part, nor than what is said of itself."""
    every = [*parts.values(), *([] if more is None else [more])]
    label = max((part.label for part in every), key=ORDER.index)
    told = [
        f"The risk of {name} is {part.label}."
        for name, part in parts.items()
        if part.label != ORDER[0]
    ]
    return Verdict(label, (*told, *(() if more is None else more.reasons)))


def judge_difference(
    log: Log, first: View, second: View, contrast: Contrast, estimator: str
) -> Verdict:
    """Whether the weighted patients of two policies are alike, held against their difference.

    Two risks that share their patients differ by less than either errs, so that an imbalance which
    neither would notice may be all of their difference.

    Args:
        first: The one policy, seen through them.
        second: The other.
    """
    expected = log.expected if estimator in WITHOUT_MODEL else log.expected_residual
    half_width = (contrast.high - contrast.low) / 2
    if expected is None or not half_width > 0:
        return Verdict("reliable", ())
    worst, label = 0.0, ORDER[0]
    for evidence in _imbalances(log, first, second, expected):
        size, error = abs(evidence.value), evidence.std_error
        z = size / error if error > 1e-12 else 0.0
        share = size / half_width
        if not (z > IMBALANCE and share > SHIFT) or share <= worst:
            continue
        grave = z > GRAVE and share > GRAVE_SHIFT
        worst, label = share, "unusable" if grave or label == ORDER[2] else "doubtful"
    if label == ORDER[0] or math.isnan(worst):
        return Verdict("reliable", ())
    reason = (
        "The patients that speak for the one and for the other were unlike in what was to be "
        f"expected of them, by {worst:.1f} times half the interval's width."
    )
    return Verdict(label, (reason,))


def _imbalances(log: Log, first: View, second: View, expected: Expected) -> Iterator[Evidence]:
    """Weighted means of the expected loss, first minus second; by action too."""
    if not all(view.weight.any() for view in (first, second)):
        return
    plain = [(view.weight * expected.plain, view.weight) for view in (first, second)]
    yield ratio_of(log.clusters, plain, sign=(1.0, -1.0))
    taken, terms = expected.by_action[log.rows, log.action].astype(np.float64), []
    for view in (first, second):
        mean = np.einsum("na,na->n", view.probabilities, expected.by_action)
        mean = mean if view.abstains is None else np.where(view.abstains, taken, mean)
        terms += [(view.weight * taken, view.weight), (mean, np.ones(taken.size))]
    yield ratio_of(log.clusters, terms, sign=(1.0, -1.0, -1.0, 1.0))
