"""What a page shows of one decision: the advice part by part, its support, and its reasons."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from etips.data.recipe import Component
from etips.errors import DataError, EtipsError, SettingError
from etips.explanation.attribution import Attribution, attribute
from etips.explanation.stay_explanation import rules_met
from etips.report.drawings import dose_map
from etips.report.wording import percent
from etips.serve.stays import CLOSE, StayView

WAIT = "wait"
"""An answer like any other."""

_MAX_LEVELS = 12
_MAX_BARS = 8


@dataclass(frozen=True)
class LevelRow:
    """A level of a part of the action; the clinicians' share is None where it is not known."""

    number: int
    words: str
    policy: float
    clinicians: float | None
    supported: bool
    advised: bool
    given: bool


@dataclass(frozen=True)
class PartRow:
    """A part of the action, to be followed or not; `agrees` is None without advice or log."""

    number: int
    name: str
    levels: Sequence[LevelRow]
    agrees: bool | None


@dataclass(frozen=True)
class DecisionCard:
    """The advice in a line, what it rests on, its parts, and the map of two doses."""

    heading: str
    sentences: Sequence[str]
    parts: Sequence[PartRow]
    picture: Markup | None
    agrees: bool | None
    close: bool
    supported: bool


def all_parts(view: StayView) -> tuple[Component, ...]:
    """The parts of the action; a plain action is one part."""
    advisor = view.advisor
    whole = Component("treatment", advisor.labels, tuple(range(len(advisor.names))), advisor.names)
    return advisor.parts or (whole,)


def make_decision(view: StayView) -> DecisionCard:
    """What to show of the decision that is looked at."""
    silent, logged, at = view.abstained, view.logged, view.at
    return DecisionCard(
        heading="Wait: no advice here" if silent else view.advisor.names[view.advised],
        sentences=_sentences(view),
        parts=[_part(view, number, part) for number, part in enumerate(all_parts(view))],
        picture=_picture(view),
        agrees=None if silent or logged is None else logged == view.advised,
        close=not silent and float(view.advice.doubt[at]) >= CLOSE,
        supported=not silent and bool(view.advice.supported[at, view.advised]),
    )


def _sentences(view: StayView) -> list[str]:
    advice, at, names = view.advice, view.at, view.advisor.names
    least = percent(advice.support, 0 if advice.support >= 0.01 else 1)
    if view.abstained:
        return [
            "With patients like this one clinicians did nothing that it could advise often enough "
            f"for the log to tell what comes of it (at least {least} of the time): it abstains."
        ]
    sentences = ["How often clinicians do this is not known: the policy was fitted without."]
    if advice.clinicians is not None:
        share = percent(float(advice.clinicians[at, view.advised]))
        sentences = [
            f"Clinicians do this with such patients {share} of the time; {least} is the least that "
            "counts as supported."
        ]
    if view.advisor.policy.acts == "draws":
        share = percent(float(advice.probabilities[at, view.advised]))
        sentences.append(
            f"The policy draws among actions: this is its likeliest, taken {share} of the time."
        )
    if float(advice.doubt[at]) >= CLOSE:
        second = int((-advice.probabilities[at]).argsort(kind="stable")[1])
        sentences.append(f"A close call: {names[second]} is nearly as likely.")
    return sentences


def _part(view: StayView, number: int, part: Component) -> PartRow:
    """Each level of a part, its shares those of all actions that have it."""
    advised = None if view.abstained else part.of_action[view.advised]
    given = None if view.logged is None else part.of_action[view.logged]
    n, of_action, advice = len(part.levels), np.array(part.of_action), view.advice
    policy = np.bincount(of_action, advice.probabilities[view.at], n).tolist()
    clinicians: list[float] | list[None] = [None] * n
    if advice.clinicians is not None:
        clinicians = np.bincount(of_action, advice.clinicians[view.at], n).tolist()
    words = part.descriptions or part.levels
    rows = [
        LevelRow(
            k, words[k], own, theirs, theirs is None or theirs >= advice.support,
            k == advised, k == given,
        )
        for k, (own, theirs) in enumerate(zip(policy, clinicians, strict=True))
    ]  # fmt: skip
    if len(rows) > _MAX_LEVELS:
        rows.sort(key=lambda row: (not (row.advised or row.given), -row.policy, row.number))
        rows = sorted(rows[:_MAX_LEVELS], key=lambda row: row.number)
    agrees = None if advised is None or given is None else advised == given
    return PartRow(number, part.name, rows, agrees)


def _picture(view: StayView) -> Markup | None:
    grid = view.advisor.grid
    if grid is None:
        return None
    chances = [float(value) for value in view.advice.probabilities[view.at]]
    thin = [not supported for supported in view.advice.supported[view.at]]
    rings = [] if view.logged is None else [(view.logged, "c1")]
    rings += [] if view.abstained else [(view.advised, "c0")]
    whose = "clinicians" if view.abstained else "policy"
    label = f"Probability of each pair of doses under the {whose}, in per cent"
    return dose_map(chances, grid, label, thin=thin, rings=rings)


@dataclass(frozen=True)
class Track:
    """Which level of a part was given and advised, decision by decision; None where none is."""

    name: str
    levels: Sequence[str]
    logged: Sequence[int | None]
    advised: Sequence[int | None]


def make_tracks(view: StayView) -> list[Track]:
    """What was done and advised over the whole stay, part by part."""
    advice, n = view.advice, len(view.steps)
    logged = view.stay.logged_action.tolist() if view.stay.logged else None
    return [
        Track(
            part.name,
            [level.partition(" (")[0] for level in part.levels],  # without medians of doses
            [None if logged is None else part.of_action[logged[k]] for k in range(n)],
            [None if advice.abstained[k] else part.of_action[advice.advised[k]] for k in range(n)],
        )
        for part in all_parts(view)
    ]


def put_together(view: StayView, answers: Sequence[str]) -> list[str]:
    """What an answer comes to, a level of each part by its number, and how far it is supported.

    Anything that is no such number waits.
    """
    parts = all_parts(view)
    levels = [{str(k): k for k in range(len(part.levels))} for part in parts]
    chosen = [known.get(answer) for answer, known in zip(answers, levels, strict=True)]
    waits = [part.name for part, level in zip(parts, chosen, strict=True) if level is None]
    if len(waits) == len(parts):
        return ["You wait, and decide later. Nothing is kept of this."]
    sentences = [f"You wait with {', '.join(waits)}."]
    if not waits:
        of_actions = list(zip(*(part.of_action for part in parts), strict=True))
        if tuple(chosen) in of_actions:
            return _of_action(view, of_actions.index(tuple(chosen)))
        sentences = ["The data know no such combination."]
    if view.advice.clinicians is None:
        return sentences
    for part, level in zip(parts, chosen, strict=True):
        if level is not None:
            share = view.advice.clinicians[view.at][np.array(part.of_action) == level].sum()
            sentences.append(
                f"Clinicians choose {part.name}, {(part.descriptions or part.levels)[level]} with "
                f"such patients {percent(float(share))} of the time."
            )
    return sentences


def _of_action(view: StayView, action: int) -> list[str]:
    advice, at, name = view.advice, view.at, view.advisor.names[action]
    sentences = [f"{name}: as advised."]
    if action != view.advised or view.abstained:
        share = percent(float(advice.probabilities[at, action]))
        whose = "the clinicians" if view.abstained else "the policy"
        sentences = [f"{name}: {whose} would choose it {share} of the time."]
    if advice.clinicians is not None:
        share = percent(float(advice.clinicians[at, action]))
        held = "supported" if advice.supported[at, action] else "not supported by the log"
        sentences.append(f"Clinicians do that with such patients {share} of the time: {held}.")
    return sentences


@dataclass(frozen=True, eq=False)
class Why:
    """What speaks for the advised action against another, or why nothing does: the rule, say."""

    attribution: Attribution | None
    missing: str
    against: str = ""

    @property
    def bars(self) -> list[tuple[str, float]]:
        """The strongest columns."""
        own = self.attribution
        return [] if own is None else list(own.by_column().items())[:_MAX_BARS]


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
        own = attribute(view.advisor.policy, view.stay, view.step, advised, against)
    except EtipsError as error:
        return Why(None, reason(error))
    return Why(own, "", view.advisor.names[own.against])


def reason(error: EtipsError) -> str:
    """A refusal as a sentence of the page; none of them holds a value."""
    if isinstance(error, SettingError | DataError):
        return " ".join(str(error).split())
    return "It cannot be explained."
