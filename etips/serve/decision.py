"""What a page shows of one decision: the advice part by part, its support, and its reasons."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from etips.data.recipe import Component
from etips.data.trajectories import Trajectories
from etips.errors import DataError, EtipsError, SettingError
from etips.explanation.attribution import Attribution, attribute
from etips.explanation.measure_next import Measurement, what_to_measure
from etips.explanation.similar import Neighbourhood, SimilarDecisions, similar_decisions
from etips.explanation.stay_explanation import rules_met
from etips.policies.policy import FittedPolicy
from etips.report.drawings import dose_map
from etips.report.wording import percent
from etips.serve.drawings import Track
from etips.serve.state import CLOSE, StayView

WAIT = "wait"
"""An answer like any other."""

_MAX_LEVELS = 12
_MAX_BARS = 8
_MAX_MEASURED = 4
_WORTH_MEASURING = 0.01  # share of likely values that must change the answer


@dataclass(frozen=True)
class LevelRow:
    """A level of a part of the action; the clinicians' share is None where it is not known."""

    number: int
    words: str
    policy: float
    clinicians: float | None
    advised: bool
    given: bool
    supported: bool


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
    said = ["How often clinicians do this is not known: the policy was fitted without."]
    if advice.clinicians is not None:
        share = percent(float(advice.clinicians[at, view.advised]))
        said = [
            f"Clinicians do this with such patients {share} of the time; {least} is the least that "
            "counts as supported."
        ]
    if view.advisor.policy.acts == "draws":
        own = percent(float(advice.probabilities[at, view.advised]))
        said.append(
            f"The policy draws among actions: this is its likeliest, taken {own} of the time."
        )
    if float(advice.doubt[at]) >= CLOSE:
        second = int((-advice.probabilities[at]).argsort(kind="stable")[1])
        said.append(f"A close call: {names[second]} is nearly as likely.")
    return said


def _part(view: StayView, number: int, part: Component) -> PartRow:
    advised = None if view.abstained else part.of_action[view.advised]
    given = None if view.logged is None else part.of_action[view.logged]
    rows = [
        LevelRow(k, words, policy, theirs, k == advised, k == given, supported)
        for k, (words, policy, theirs, supported) in enumerate(_shares(view, part))
    ]
    if len(rows) > _MAX_LEVELS:
        rows.sort(key=lambda row: (not (row.advised or row.given), -row.policy, row.number))
        rows = sorted(rows[:_MAX_LEVELS], key=lambda row: row.number)
    agrees = None if advised is None or given is None else advised == given
    return PartRow(number, part.name, rows, agrees)


def _shares(view: StayView, part: Component) -> list[tuple[str, float, float | None, bool]]:
    """Each level of a part, over all actions that have it.

    Its words, probability under the policy and the clinicians, and whether that is supported.
    """
    n, of_action, advice = len(part.levels), np.array(part.of_action), view.advice
    policy = np.bincount(of_action, advice.probabilities[view.at], n).tolist()
    words = part.descriptions or part.levels
    if advice.clinicians is None:
        return [(words[k], policy[k], None, True) for k in range(n)]
    theirs = np.bincount(of_action, advice.clinicians[view.at], n).tolist()
    return [(words[k], policy[k], theirs[k], theirs[k] >= advice.support) for k in range(n)]


def _picture(view: StayView) -> Markup | None:
    grid = view.advisor.grid
    if grid is None:
        return None
    chances = [float(value) for value in view.advice.probabilities[view.at]]
    thin = [not own for own in view.advice.supported[view.at]]
    rings = [] if view.logged is None else [(view.logged, "c1")]
    rings += [] if view.abstained else [(view.advised, "c0")]
    whose = "clinicians" if view.abstained else "policy"
    label = f"Probability of each pair of doses under the {whose}, in per cent"
    return dose_map(chances, grid, label, thin=thin, rings=rings)


def make_tracks(view: StayView) -> list[tuple[str, Track]]:
    """What was done and advised over the whole stay, part by part."""
    stay, advice = view.stay, view.advice
    logged = stay.logged_action.tolist() if stay.logged else [None] * len(advice.abstained)
    advised = [
        None if silent else int(action)
        for action, silent in zip(advice.advised, advice.abstained, strict=True)
    ]
    return [
        (
            part.name,
            Track(
                [level.partition(" (")[0] for level in part.levels],  # without medians of doses
                [None if own is None else part.of_action[own] for own in logged],
                [None if own is None else part.of_action[own] for own in advised],
            ),
        )
        for part in all_parts(view)
    ]


def put_together(view: StayView, answers: Sequence[str]) -> list[str]:
    """What an answer, part by part, comes to, and how far it is supported.

    Args:
        view: The decision.
        answers: A level of each part by its number; anything else waits.
    """
    parts = all_parts(view)
    chosen = [_level(own, part) for own, part in zip(answers, parts, strict=True)]
    waits = [part.name for part, own in zip(parts, chosen, strict=True) if own is None]
    if len(waits) == len(parts):
        return ["You wait, and decide later. Nothing is kept of this."]
    said = [f"You wait with {', '.join(waits)}."]
    if not waits:
        of_actions = list(zip(*(part.of_action for part in parts), strict=True))
        if tuple(chosen) in of_actions:
            return _of_action(view, of_actions.index(tuple(chosen)))
        said = ["The data know no such combination."]
    for part, own in zip(parts, chosen, strict=True):
        if own is not None:
            words, _, theirs, _ = _shares(view, part)[own]
            if theirs is not None:
                said.append(
                    f"Clinicians choose {part.name}, {words} with such patients {percent(theirs)} "
                    "of the time."
                )
    return said


def _of_action(view: StayView, action: int) -> list[str]:
    advice, at = view.advice, view.at
    name = view.advisor.names[action]
    said = [f"{name}: as advised."]
    if action != view.advised or view.abstained:
        own = percent(float(advice.probabilities[at, action]))
        whose = "the clinicians" if view.abstained else "the policy"
        said = [f"{name}: {whose} would choose it {own} of the time."]
    if advice.clinicians is not None:
        often = percent(float(advice.clinicians[at, action]))
        held = "supported" if advice.supported[at, action] else "not supported by the log"
        said.append(f"Clinicians do that with such patients {often} of the time: {held}.")
    return said


def _level(answer: str, part: Component) -> int | None:
    if not (answer.isascii() and answer.isdecimal() and len(answer) < 6):
        return None
    return int(answer) if int(answer) < len(part.levels) else None


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
        return [] if self.said is None else list(self.said.by_column().items())[:_MAX_BARS]


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


def find_neighbours(policy: FittedPolicy, data: Trajectories) -> Neighbourhood | str:
    """The log made ready for similar decisions, or why that cannot be."""
    try:
        return Neighbourhood.of(policy, data)
    except EtipsError as error:
        return _reason(error)


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
    return [own for own in found if own.changes >= _WORTH_MEASURING][:_MAX_MEASURED]


def _reason(error: EtipsError) -> str:
    """A refusal as a sentence of the page; none of them holds a value."""
    if isinstance(error, SettingError | DataError):
        return " ".join(str(error).split())
    return "It cannot be explained."
