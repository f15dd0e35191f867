"""The model card: what the policy is, what it was learned from, and how far it may be trusted."""

from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, JsonValue
from pydantic import Field as Told

from etips.files.fingerprint import fingerprint
from etips.policies.asking import arrays_of
from etips.policies.policy import FittedPolicy
from etips.results.conclusions import conclude
from etips.results.exhibits import NOTICE
from etips.results.method_result import MethodResult
from etips.results.results import Results
from etips.runs.folder import RunFolder
from etips.serve.advice import Advisor
from etips.serve.fields import Field, Form
from etips.version import __version__

_EXACT = ConfigDict(extra="forbid")

USE = (
    "To look at what a policy learned from a log of treatments would advise, and how far that log "
    "supports it, together with people who know the patients. It is no medical device: not for "
    "decisions about patients, nor for patients unlike those of the training data."
)


class FeatureCard(BaseModel):
    """A column that the policy reads."""

    model_config = _EXACT
    name: str
    static: bool
    levels: list[str] | None = Told(description="Of a category; null for a number.")
    may_be_missing: bool


class ActionCard(BaseModel):
    """An action."""

    model_config = _EXACT
    number: int
    name: str
    words: str
    parts: dict[str, str] | None
    logged_share: float | None = Told(
        description="Share of the training decisions; null where that would tell of a few people."
    )


class EstimateCard(BaseModel):
    """What an evaluation found; never a number without its verdict."""

    model_config = _EXACT
    policy: str
    verdict: str
    finding: str
    risk: float | None
    low: float | None
    high: float | None
    clinicians: float | None = Told(description="Mean logged loss.")
    reasons: list[str]
    in_sample: bool


class PolicyCard(BaseModel):
    """What the policy is."""

    model_config = _EXACT
    notice: str
    intended_use: str
    version: str
    fingerprint: str = Told(description="Of the policy.")
    data_fingerprint: str | None = Told(description="Of the data that it was learned from.")
    method: str | None
    settings: dict[str, JsonValue]
    provenance: dict[str, str]
    acts: str
    least_support: float
    lag: int = Told(description="1: a decision sees earlier steps only; 0: its own too.")
    reads_actions: bool = Told(description="Whether it reads the actions taken so far.")
    features: list[FeatureCard]
    actions: list[ActionCard]
    estimates: list[EstimateCard] = Told(description="Empty until `etips evaluate RUN DATA`.")


@dataclass(frozen=True)
class RunRecord:
    """What a run folder says of itself.

    Args:
        name: Of the folder.
        told: How it was fitted.
        data: Fingerprint of the data.
        results: What an evaluation found, if there was one.
    """

    name: str
    told: dict[str, object]
    data: str | None
    results: Results | None


def make_card(advisor: Advisor, form: Form, record: RunRecord) -> PolicyCard:
    """The card of a policy."""
    policy, schema = advisor.policy, advisor.schema
    method = record.told.get("method")
    return PolicyCard(
        notice=NOTICE,
        intended_use=USE,
        version=__version__,
        fingerprint=mark_policy(policy),
        data_fingerprint=record.data,
        method=method if isinstance(method, str) else None,
        settings={name: _plain(value) for name, value in record.told.items() if name != "method"},
        provenance=dict(schema.provenance),
        acts=policy.acts,
        least_support=advisor.support,
        lag=schema.lag,
        reads_actions=policy.earlier_actions,
        features=[
            *(_feature(own, static=False) for own in form.sequence),
            *(_feature(own, static=True) for own in form.static),
        ],
        actions=[_action(advisor, number) for number in range(schema.n_actions)],
        estimates=_estimates(record.results),
    )


def mark_policy(policy: FittedPolicy) -> str:
    """A fingerprint of what the policy is made of."""
    members = [own for own in (policy.propensity, policy.networks) if own is not None]
    arrays = [sorted(arrays_of(own).items()) for own in members]
    return fingerprint(
        kind=policy.kind,
        constant=policy.constant,
        tree=None if policy.tree is None else policy.tree.to_json(),
        schema=policy.schema.to_json(),
        arrays=arrays,
    )


def read_record(folder: RunFolder, results: Results | None) -> RunRecord:
    """What a run folder says of itself."""
    told = folder.read_told()
    data = folder.read_fingerprint()
    return RunRecord(folder.place.resolve().name, told, data, results)


def _feature(field: Field, *, static: bool) -> FeatureCard:
    levels = list(field.levels) or None
    return FeatureCard(name=field.name, static=static, levels=levels, may_be_missing=field.may_miss)


def _action(advisor: Advisor, number: int) -> ActionCard:
    origin = advisor.policy.origin
    parts = {own.name: own.levels[own.of_action[number]] for own in advisor.parts}
    return ActionCard(
        number=number,
        name=advisor.labels[number],
        words=advisor.names[number],
        parts=parts or None,
        logged_share=None if origin is None else origin.action_shares[number],
    )


def _estimates(results: Results | None) -> list[EstimateCard]:
    if results is None:
        return []
    return [_estimate(method, results) for method in results.methods]


def _estimate(method: MethodResult, results: Results) -> EstimateCard:
    head = method.estimates[0] if method.estimates else None
    return EstimateCard(
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


def _plain(value: object) -> JsonValue:
    """A setting as JSON holds it."""
    if isinstance(value, dict):
        return {str(name): _plain(own) for name, own in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(own) for own in value]
    return value if isinstance(value, bool | int | float | str) or value is None else str(value)
