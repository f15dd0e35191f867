"""All that the service knows of a run and its data: opened once at the start, never written."""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from pydantic import JsonValue

from etips.data.coded import Floats32
from etips.data.decisions import Bools, Floats, Ints
from etips.data.trajectories import Trajectories
from etips.errors import FileError
from etips.files.fingerprint import fingerprint
from etips.policies.asking import arrays_of
from etips.policies.policy import FittedPolicy
from etips.results.conclusions import conclude
from etips.results.parsing import read_results
from etips.results.records import NOTICE
from etips.results.results import Results
from etips.runs.folder import RunFolder
from etips.serve.advice import Advice, Advisor
from etips.serve.fields import Field, Value
from etips.serve.schemas import ActionCard, EstimateCard, FeatureCard, PolicyCard
from etips.version import __version__

INTENDED_USE = (
    "To look at what a policy learned from a log of treatments would advise, and how far that log "
    "supports it, together with people who know the patients. It is no medical device: not for "
    "decisions about patients, nor for patients unlike those of the training data."
)

CLOSE = 0.9
"""Doubt from which a decision is a close call: the second choice is within ten per cent."""

ORDERS = {
    "disagreement": "most disagreement first",
    "abstention": "most abstention first",
    "doubt": "most doubt first",
}
FILTERS = {
    "all": "all stays",
    "disagrees": "the policy disagrees somewhere",
    "abstains": "the policy abstains somewhere",
    "wavers": "a close call somewhere",
    "agrees": "the policy agrees throughout",
}


@dataclass(frozen=True)
class StayRow:
    """A stay in the list.

    Args:
        code: What it is called here.
        n_decisions: How many decisions it has.
        disagreement: Share of them at which something else was done than recommended; None without
            a log.
        abstention: Share of them at which the policy abstains.
        doubt: Mean doubt where it does not abstain.
        close: Whether one of them is a close call.
    """

    code: str
    n_decisions: int
    disagreement: float | None
    abstention: float
    doubt: float
    close: bool

    def is_shown(self, show: str) -> bool:
        """Whether one of `FILTERS` keeps it."""
        return {
            "disagrees": bool(self.disagreement),
            "abstains": self.abstention > 0,
            "wavers": self.close,
            "agrees": not self.disagreement and not self.abstention,
        }.get(show, True)


class StayList:
    """Stays by other names than their own, with what the policy says of each.

    Args:
        advisor: The policy; it is asked about every stay, once.
        data: The stays.
        key: Of the names: nobody without it can tell a stay from its name.
    """

    def __init__(self, advisor: Advisor, data: Trajectories, key: bytes) -> None:
        self.data, self.advice = data, advisor.ask(data)
        self.codes = name_stays(data, key)
        self.place = {code: number for number, code in enumerate(self.codes)}
        """Number of each stay by its name: what is not in it does not exist."""

    @cached_property
    def first(self) -> Ints:
        """Where the decisions of each stay begin, shape (n_stays + 1,)."""
        return np.searchsorted(self.data.decisions().stay, np.arange(self.data.n_stays + 1))

    @cached_property
    def rows(self) -> tuple[StayRow, ...]:
        """The stays that have decisions, in the order of the data."""
        stay, n = self.data.decisions().stay, self.data.n_stays
        silent, doubt = self.advice.abstained, self.advice.doubt
        counts = np.diff(self.first)

        def total(values: Floats | Bools) -> Floats:
            return np.bincount(stay, values, n).astype(np.float64)

        differs: list[float] | list[None] = [None] * n
        if self.data.logged:
            other = ~silent & (self.advice.advised != self.data.logged_action)
            differs = (total(other) / np.maximum(counts, 1)).tolist()
        abstains = (total(silent) / np.maximum(counts, 1)).tolist()
        doubts = (total(np.where(silent, 0.0, doubt)) / np.maximum(total(~silent), 1)).tolist()
        close = total(~silent & (doubt >= CLOSE)) > 0
        return tuple(
            StayRow(
                self.codes[k], int(counts[k]), differs[k], abstains[k], doubts[k], bool(close[k])
            )
            for k in np.flatnonzero(counts)
        )

    def select(self, order: str, show: str, code: str = "") -> list[StayRow]:
        """Rows to list, by one of `ORDERS` and one of `FILTERS`."""
        wanted = code.strip().upper()
        rows = [row for row in self.rows if row.is_shown(show) and row.code.startswith(wanted)]
        return sorted(rows, key=lambda row: -(getattr(row, order) or 0.0))

    def decisions(self, code: str) -> slice:
        """Places of a stay's decisions among all; none for a name that no stay has."""
        if code not in self.place:
            return slice(0, 0)
        number = self.place[code]
        return slice(int(self.first[number]), int(self.first[number + 1]))


def name_stays(data: Trajectories, key: bytes) -> tuple[str, ...]:
    """Names that say nothing without the key; the same for the same key and data."""
    made: dict[str, None] = {}
    for stay in data.stay.tolist():
        digest = hmac.new(key, repr(stay).encode(), hashlib.sha256).hexdigest().upper()
        size = 8
        while digest[:size] in made and size < len(digest):
            size += 1
        made[digest[:size]] = None
    return tuple(made)


@dataclass(frozen=True, eq=False)
class StayView:
    """One decision of one stay: its history, what was done, what is advised.

    Args:
        advisor: The policy.
        code: What the stay is called.
        stay: The stay alone.
        advice: At its decisions.
        at: Which of its decisions, from 0.
    """

    advisor: Advisor
    code: str
    stay: Trajectories
    advice: Advice
    at: int

    @classmethod
    def of(cls, advisor: Advisor, stays: StayList, code: str, at: int) -> "StayView":
        """A decision of a listed stay; the last one where there are not so many."""
        number, places = stays.place[code], stays.decisions(code)
        at = min(max(at, 0), places.stop - places.start - 1)
        stay = stays.data.subset(slice(number, number + 1))
        return cls(advisor, code, stay, stays.advice.at(places), at)

    @cached_property
    def steps(self) -> list[int]:
        """Step of each decision."""
        return [int(step) for step in self.stay.decisions().step]

    @property
    def step(self) -> int:
        """Step of the decision."""
        return self.steps[self.at]

    @property
    def row(self) -> int:
        """The last row that the decision sees."""
        return self.step - self.stay.lag

    @property
    def abstained(self) -> bool:
        """Whether the policy leaves the decision to the clinicians."""
        return bool(self.advice.abstained[self.at])

    @property
    def advised(self) -> int:
        """The likeliest action."""
        return int(self.advice.advised[self.at])

    @property
    def logged(self) -> int | None:
        """What was done, if that is known."""
        return None if not self.stay.logged else int(self.stay.logged_action[self.at])

    @cached_property
    def features(self) -> Floats32:
        """Features of every step of the stay."""
        return np.asarray(self.stay.sequence[:], np.float32)

    def value(self, field: Field) -> Value:
        """What the decision sees last of a field, of a step or of the stay."""
        return field.read(self.stay.static[0] if field.static else self.features[self.row])

    def changed(self, values: Mapping[Field, Value]) -> "StayView":
        """The same with other values at the last step that is seen, and the policy asked anew."""
        rows, fixed = self.features.copy(), np.array(self.stay.static, np.float32)
        for field, value in values.items():
            field.write(fixed[0] if field.static else rows[self.row], value)
        stay = replace(self.stay, sequence=rows, static=fixed, truth=None)
        return replace(self, stay=stay, advice=self.advisor.ask(stay))


@dataclass(frozen=True, eq=False)
class ServedRun:
    """A run folder that is served; `stays` are the data to look at, if there are any."""

    advisor: Advisor
    name: str
    card: PolicyCard
    results: Results | None = None
    stays: StayList | None = None


def open_run(run: Path, data: Trajectories | None, *, key: bytes) -> ServedRun:
    """Open a folder that `etips fit` wrote; nothing of it is read later.

    Args:
        run: The folder.
        data: Stays to look at.
        key: Of the names that stays go by.
    """
    folder = RunFolder(run)
    if not folder.place.is_dir():
        raise FileError(str(run), "must be a folder that `etips fit` wrote")
    advisor = Advisor(folder.open_policy())
    results = read_results(run) if folder.results.is_file() else None
    return ServedRun(
        advisor,
        folder.place.resolve().name,
        make_card(advisor, folder.read_told(), folder.read_fingerprint(), results),
        results,
        None if data is None else StayList(advisor, data, key),
    )


def make_card(
    advisor: Advisor, told: Mapping[str, object], data: str | None, results: Results | None
) -> PolicyCard:
    """The model card: what the policy is, what it was learned from, how far it may be trusted.

    Args:
        advisor: The policy.
        told: How it was fitted.
        data: Fingerprint of the data.
        results: What an evaluation found, if there was one.
    """
    policy, schema, form = advisor.policy, advisor.policy.schema, advisor.form
    method, origin = told.get("method"), policy.origin
    return PolicyCard(
        notice=NOTICE,
        intended_use=INTENDED_USE,
        version=__version__,
        fingerprint=mark_policy(policy),
        data_fingerprint=data,
        method=method if isinstance(method, str) else None,
        settings={name: _plain(value) for name, value in told.items() if name != "method"},
        provenance=dict(schema.provenance),
        acts=policy.acts,
        least_support=advisor.support,
        lag=schema.lag,
        reads_actions=policy.earlier_actions,
        features=[
            FeatureCard(
                name=own.name,
                static=own.static,
                levels=list(own.levels) or None,
                may_be_missing=own.may_miss,
            )
            for own in (*form.sequence, *form.static)
        ],
        actions=[
            ActionCard(
                number=number,
                name=advisor.labels[number],
                words=advisor.names[number],
                parts=parts,
                logged_share=None if origin is None else origin.action_shares[number],
            )
            for number, parts in enumerate(advisor.parts_by_action())
        ],
        estimates=[] if results is None else _estimates(results),
    )


def mark_policy(policy: FittedPolicy) -> str:
    """A fingerprint of what the policy is made of."""
    members = [own for own in (policy.propensity, policy.networks) if own is not None]
    return fingerprint(
        kind=policy.kind,
        constant=policy.constant,
        lean=policy.lean,
        tree=None if policy.tree is None else policy.tree.to_json(),
        schema=policy.schema.to_json(),
        arrays=[sorted(arrays_of(own).items()) for own in members],
    )


def _estimates(results: Results) -> list[EstimateCard]:
    made = []
    for method in results.methods:
        head = method.estimates[0] if method.estimates else None
        made.append(
            EstimateCard(
                policy=method.name,
                verdict=method.verdict or "no verdict",
                finding=conclude(method, results.data).words,
                risk=None if head is None else head.risk,
                low=None if head is None else head.low,
                high=None if head is None else head.high,
                clinicians=results.data.mean_loss,
                reasons=list(method.reasons),
                in_sample=method.in_sample,
            )
        )
    return made


def _plain(value: object) -> JsonValue:
    """A setting as JSON holds it."""
    if isinstance(value, dict):
        return {str(name): _plain(own) for name, own in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(own) for own in value]
    return value if isinstance(value, bool | int | float | str) or value is None else str(value)
