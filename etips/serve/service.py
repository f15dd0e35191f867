"""A run as a service: opened once, then recommendations, the model card and health as JSON."""

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, TypeAdapter, ValidationError
from starlette.exceptions import HTTPException

from etips.data.decisions import Ints
from etips.data.trajectories import Trajectories
from etips.errors import EtipsError, FileError
from etips.files.fingerprint import fingerprint
from etips.policies.asking import arrays_of
from etips.policies.policy import FittedPolicy
from etips.results.conclusions import conclude
from etips.results.parsing import read_results
from etips.results.records import NOTICE, MethodResult
from etips.results.results import Results
from etips.runs.folder import RunFolder
from etips.serve.gate import RECOMMEND, refuse
from etips.serve.pages import add_pages
from etips.serve.schemas import (
    ActionCard,
    Decision,
    EstimateCard,
    FeatureCard,
    Health,
    PolicyCard,
    Question,
    Recommendation,
    Refusal,
    describe_faults,
)
from etips.serve.stays import Advice, Advisor, ServedRun, StayList
from etips.version import __version__

INTENDED_USE = (
    "To look at what a policy learned from a log of treatments would advise, and how far that log "
    "supports it, together with people who know the patients. It is no medical device: not for "
    "decisions about patients, nor for patients unlike those of the training data."
)

_AT_ONCE = 2
"""Questions that are worked on at the same time; the others wait their turn."""

_DIGITS = 6
_SETTINGS = TypeAdapter(dict[str, object])
_REFUSALS = {
    401: "No token, or a wrong one.",
    403: "Another host or origin than the one served.",
    413: "The body is too large.",
    415: "The body is not application/json.",
    422: "The body is not as described.",
    431: "The headers are too large.",
    503: "It took too long.",
}
T = TypeVar("T")


def open_run(run: Path, data: Trajectories | None, *, key: bytes) -> ServedRun:
    """Open a folder that `etips fit` wrote; nothing of it is read later.

    `data` are stays to look at, whose names are made with a key.
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

    `told` is how it was fitted, `data` the fingerprint of the log.
    """
    policy, schema, form = advisor.policy, advisor.policy.schema, advisor.form
    method, origin = told.get("method"), policy.origin
    settings = {name: value for name, value in told.items() if name != "method"}
    return PolicyCard(
        notice=NOTICE,
        intended_use=INTENDED_USE,
        version=__version__,
        fingerprint=mark_policy(policy),
        data_fingerprint=data,
        method=method if isinstance(method, str) else None,
        settings=_SETTINGS.dump_python(settings, mode="json", fallback=str),
        provenance=dict(schema.provenance),
        acts=policy.acts,
        least_support=advisor.support,
        lag=schema.lag,
        reads_actions=policy.earlier_actions,
        features=[
            FeatureCard(
                name=column.name,
                static=column.static,
                levels=list(column.levels) or None,
                may_be_missing=column.may_miss,
            )
            for column in (*form.sequence, *form.static)
        ],
        actions=[
            ActionCard(
                number=number,
                name=advisor.labels[number],
                words=advisor.names[number],
                parts=parts,
                logged_share=None if origin is None else origin.action_shares[number],
            )
            for number, parts in enumerate(advisor.parts_by_action)
        ],
        estimates=[] if results is None else [_estimate(own, results) for own in results.methods],
    )


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


def make_application(run: ServedRun) -> FastAPI:
    """The application; it checks no token, `etips.serve.gate.Gate` does."""
    workers = ThreadPoolExecutor(_AT_ONCE, "etips-serve")

    async def in_turn(work: Callable[[], T]) -> T:
        """Work beside the event loop; what is given up before its turn is never begun."""
        return await asyncio.get_running_loop().run_in_executor(workers, work)

    advisor = run.advisor
    question = Question(
        advisor.form, advisor.labels, earlier_actions=advisor.policy.earlier_actions
    )
    app = FastAPI(
        title="etips",
        version=__version__,
        description=f"Recommendations of a learned treatment policy. {NOTICE}",
        docs_url=None,  # its page loads from elsewhere
        redoc_url=None,
        redirect_slashes=False,
    )
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _plain)

    @app.post(
        RECOMMEND,
        summary="What the policy would do, with support and abstention",
        responses=_responses(Recommendation, 413, 415, 422, 503),
        response_class=Response,
    )
    async def recommend(request: Request) -> Response:
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise HTTPException(415)
        body = await request.body()
        if question.is_too_large(body):
            raise HTTPException(413)
        return await in_turn(lambda: _recommend(run, question, body))

    @app.get(
        "/v1/policy",
        summary="The model card",
        responses=_responses(PolicyCard),
        response_class=Response,
    )
    async def policy() -> Response:
        return _json(run.card)

    @app.get(
        "/health",
        summary="Whether the service answers",
        responses=_responses(Health),
        response_class=Response,
    )
    async def health() -> Response:
        return _json(Health(status="ok", version=__version__))

    add_pages(app, run, in_turn)
    _describe_requests(app, question)
    return app


def _recommend(run: ServedRun, question: Question, body: bytes) -> Response:
    try:
        stays, asked = question.read(body)
        advice = run.advisor.ask(stays).at(asked)
    except ValidationError as error:
        return _json(describe_faults(error, question.known), 422)
    except EtipsError:
        return _json(Refusal(detail="the stays cannot be read as the training data"), 422)
    stay, step = stays.decisions()
    return _json(answer(run.advisor, advice, stay[asked], step[asked]))


def answer(advisor: Advisor, advice: Advice, stay: Ints, step: Ints) -> Recommendation:
    """What is sent of some decisions, which are those of these stays at these steps."""
    chances: list[list[float]] = advice.probabilities.round(_DIGITS).tolist()
    clinicians: list[list[float]] | list[None] = [None] * len(chances)
    if advice.clinicians is not None:
        clinicians = advice.clinicians.round(_DIGITS).tolist()
    supported, decisions = advice.supported.tolist(), []
    for n, action in enumerate(advice.advised.tolist()):
        silent, theirs = bool(advice.abstained[n]), clinicians[n]
        decisions.append(
            Decision(
                stay=int(stay[n]),
                step=int(step[n]),
                abstained=silent,
                recommended=None if silent else advisor.labels[action],
                number=None if silent else action,
                parts=None if silent else advisor.parts_by_action[action],
                support=None if silent or theirs is None else theirs[action],
                probabilities=chances[n],
                clinicians=theirs,
                supported=supported[n],
            )
        )
    return Recommendation(
        notice=NOTICE,
        actions=list(advisor.labels),
        acts=advisor.policy.acts,
        least_support=advice.support,
        decisions=decisions,
    )


def _json(document: BaseModel, status: int = 200) -> Response:
    return Response(document.model_dump_json(), status, media_type="application/json")


def _responses(model: type[BaseModel], *refusals: int) -> dict[int | str, dict[str, object]]:
    """The answer and the refusals of a route, for the description."""
    refused: dict[int | str, dict[str, object]] = {
        status: {"model": Refusal, "description": _REFUSALS[status]}
        for status in (401, 403, 431, *refusals)
    }
    return {200: {"model": model}, **refused}


def _describe_requests(app: FastAPI, question: Question) -> None:
    """Add to the description the body of a request as this policy's data have it, and the token."""
    document = app.openapi()  # FastAPI keeps it and serves it as it is
    schema = question.model.model_json_schema(ref_template="#/components/schemas/{model}")
    parts = document.setdefault("components", {})
    parts.setdefault("schemas", {}).update(schema.pop("$defs", {}))
    parts["schemas"]["Recommend"] = schema
    parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    document["security"] = [{"token": []}]
    reference = {"$ref": "#/components/schemas/Recommend"}
    document["paths"][RECOMMEND]["post"]["requestBody"] = {
        "required": True,
        "content": {"application/json": {"schema": reference}},
    }


async def _invalid(_: Request, __: Exception) -> Response:
    """FastAPI's own answer repeats what was sent."""
    return _json(Refusal(detail="the request is not as the description says"), 422)


async def _plain(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    refused = refuse(error.status_code)
    if error.headers and "Allow" in error.headers:
        refused.headers["allow"] = error.headers["Allow"]
    return refused
