"""What a page shows of one decision: the advice, part by part, and how far it is supported."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from etips.data.intake.components import Component
from etips.report.maps import dose_map
from etips.report.wording import percent
from etips.serve.stay_list import CLOSE
from etips.serve.stay_view import StayView
from etips.serve.tracks import Track

WAIT = "wait"
"""An answer like any other."""

_MOST_LEVELS = 12


@dataclass(frozen=True)
class LevelRow:
    """A level of a part of the action.

    Args:
        number: Of the level.
        words: What it is.
        policy: Share under the policy.
        clinicians: Under the clinicians; None where that is not known.
        advised: Whether the advice has it.
        given: Whether it was given.
        supported: Whether clinicians do it often enough.
    """

    number: int
    words: str
    policy: float
    clinicians: float | None
    advised: bool
    given: bool
    supported: bool


@dataclass(frozen=True)
class PartRow:
    """A part of the action, to be followed or not.

    Args:
        number: Of the part.
        name: What it is.
        levels: What it can be.
        agrees: Whether what was given is what is advised; None where one of them is not there.
    """

    number: int
    name: str
    levels: Sequence[LevelRow]
    agrees: bool | None


@dataclass(frozen=True)
class DecisionCard:
    """All of it.

    Args:
        heading: The advice in a line.
        sentences: What it rests on.
        parts: The action, part by part.
        picture: The map of two doses, or None.
        agrees: Whether it was done.
        close: Whether the second choice is as likely.
        supported: Whether the advice is supported.
    """

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
    if advisor.parts:
        return advisor.parts
    order = tuple(range(advisor.schema.n_actions))
    return (Component("treatment", advisor.labels, order, advisor.names),)


def make_decision(view: StayView) -> DecisionCard:
    """What to show of the decision that is looked at."""
    silent, logged = view.abstained, view.logged
    agrees = None if silent or logged is None else logged == view.advised
    doubt = float(view.advice.doubt[view.at])
    return DecisionCard(
        heading=_heading(view),
        sentences=_sentences(view),
        parts=[_part(view, number, part) for number, part in enumerate(all_parts(view))],
        picture=_picture(view),
        agrees=agrees,
        close=not silent and doubt >= CLOSE,
        supported=not silent and bool(view.advice.supported[view.at, view.advised]),
    )


def _heading(view: StayView) -> str:
    return "Wait: no advice here" if view.abstained else view.advisor.names[view.advised]


def _sentences(view: StayView) -> list[str]:
    advice, at, least = view.advice, view.at, _least(view)
    if view.abstained:
        return [
            "With patients like this one clinicians did nothing that it could advise often enough "
            f"for the log to tell what comes of it (at least {least} of the time): it abstains."
        ]
    said = []
    if advice.clinicians is not None:
        share = float(advice.clinicians[at, view.advised])
        often = f"Clinicians do this with such patients {percent(share)} of the time"
        said.append(f"{often}; {least} is the least that counts as supported.")
    else:
        said.append("How often clinicians do this is not known: the policy was fitted without.")
    if view.advisor.draws:
        own = percent(float(advice.probabilities[at, view.advised]))
        said.append(
            f"The policy draws among actions: this is its likeliest, taken {own} of the time."
        )
    if float(advice.doubt[at]) >= CLOSE:
        second = int((-advice.probabilities[at]).argsort(kind="stable")[1])
        said.append(f"A close call: {view.advisor.names[second]} is nearly as likely.")
    return said


def _least(view: StayView) -> str:
    support = view.advice.support
    return percent(support, 0 if support >= 0.01 else 1)


def _part(view: StayView, number: int, part: Component) -> PartRow:
    shares = view.advisor.shares(part, view.advice, view.at)
    advised = None if view.abstained else part.of_action[view.advised]
    given = None if view.logged is None else part.of_action[view.logged]
    rows = [
        LevelRow(
            k,
            own.words,
            own.policy,
            own.clinicians,
            k == advised,
            k == given,
            own.clinicians is None or own.clinicians >= view.advice.support,
        )
        for k, own in enumerate(shares)
    ]
    if len(rows) > _MOST_LEVELS:
        rows.sort(key=lambda row: (not (row.advised or row.given), -row.policy, row.number))
        rows = sorted(rows[:_MOST_LEVELS], key=lambda row: row.number)
    agrees = None if advised is None or given is None else advised == given
    return PartRow(number, part.name, rows, agrees)


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
    logged = stay.logged_action.tolist() if stay.logged else [None] * view.n_decisions
    advised = [
        None if silent else int(action)
        for action, silent in zip(advice.advised, advice.abstained, strict=True)
    ]
    return [
        (
            part.name,
            Track(
                _short(part),
                [None if own is None else part.of_action[own] for own in logged],
                [None if own is None else part.of_action[own] for own in advised],
            ),
        )
        for part in all_parts(view)
    ]


def _short(part: Component) -> list[str]:
    """Levels beside a drawing: ranges of doses without their medians."""
    return [level.partition(" (")[0] for level in part.levels]


def put_together(view: StayView, answers: Sequence[str]) -> list[str]:
    """What somebody's answer, part by part, comes to, and how far it is supported.

    Args:
        view: The decision.
        answers: A level of each part by its number, or `WAIT`.
    """
    parts = all_parts(view)
    chosen = [_level(own, part) for own, part in zip(answers, parts, strict=True)]
    waits = [part.name for part, own in zip(parts, chosen, strict=True) if own is None]
    if len(waits) == len(parts):
        return ["You wait, and decide later. Nothing is kept of this."]
    action = _combined(view, chosen) if not waits else None
    if action is not None:
        return _of_action(view, action)
    said = [f"You wait with {', '.join(waits)}."] if waits else []
    if not waits:
        said.append("The data know no such combination.")
    for part, own in zip(parts, chosen, strict=True):
        if own is not None:
            share = view.advisor.shares(part, view.advice, view.at)[own]
            words = f"{part.name}, {share.words}"
            if share.clinicians is not None:
                often = percent(share.clinicians)
                said.append(f"Clinicians choose {words} with such patients {often} of the time.")
    return said


def _combined(view: StayView, chosen: Sequence[int | None]) -> int | None:
    levels = [own for own in chosen if own is not None]
    return view.advisor.combine(levels) if view.advisor.parts else levels[0]


def _of_action(view: StayView, action: int) -> list[str]:
    advice, at = view.advice, view.at
    name = view.advisor.names[action]
    said = []
    if action == view.advised and not view.abstained:
        said.append(f"{name}: as advised.")
    else:
        own = percent(float(advice.probabilities[at, action]))
        whose = "the clinicians" if view.abstained else "the policy"
        said.append(f"{name}: {whose} would choose it {own} of the time.")
    if advice.clinicians is not None:
        often = percent(float(advice.clinicians[at, action]))
        held = "supported" if advice.supported[at, action] else "not supported by the log"
        said.append(f"Clinicians do that with such patients {often} of the time: {held}.")
    return said


def _level(answer: str, part: Component) -> int | None:
    """A level by its number; anything else waits."""
    if not (answer.isascii() and answer.isdecimal() and len(answer) < 6):
        return None
    return int(answer) if int(answer) < len(part.levels) else None
