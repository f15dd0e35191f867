"""The JSON service: recommendations, the model card, health, and the description of all three."""

from collections.abc import Callable
from typing import TypeVar

import anyio
from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import ValidationError
from starlette.exceptions import HTTPException

from etips.errors import EtipsError
from etips.results.exhibits import NOTICE
from etips.serve.advice import Advisor
from etips.serve.fields import Form
from etips.serve.model_card import PolicyCard
from etips.serve.questions import Question
from etips.serve.refusing import refuse_request
from etips.serve.spoken import Health, Recommendation, Refusal, encode_answers
from etips.version import __version__

RECOMMEND = "/v1/recommend"
MOST_BATCH = 16 * 1024 * 1024
"""Bytes of a request for recommendations: about three thousand stays of the paper's cohort."""

_AT_ONCE = 2
"""Questions that are worked on at the same time; the others wait their turn."""

_WORDS = {
    404: "there is no such page",
    405: "this cannot be asked in that way",
    415: "the body must be application/json",
}
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


class Turns:
    """Work outside the event loop, a few pieces at a time."""

    def __init__(self) -> None:
        self._limiter: anyio.CapacityLimiter | None = None

    async def take(self, work: Callable[[], T]) -> T:
        """Do the work when its turn comes."""
        self._limiter = self._limiter or anyio.CapacityLimiter(_AT_ONCE)
        return await anyio.to_thread.run_sync(work, limiter=self._limiter)


def make_service(advisor: Advisor, form: Form, card: PolicyCard, turns: Turns) -> FastAPI:
    """The application with its JSON routes; it checks no token, see `etips.serve.gate`."""
    earlier = advisor.policy.earlier_actions
    question = Question(form, advisor.labels, earlier_actions=earlier)
    app = FastAPI(
        title="etips",
        version=__version__,
        description=f"Recommendations of a learned treatment policy. {NOTICE}",
        docs_url=None,  # its page loads from elsewhere
        redoc_url=None,
        redirect_slashes=False,
    )
    app.include_router(_routes(advisor, question, card, turns))
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _plain)
    app.openapi = _described(app, question)  # type: ignore[method-assign]
    return app


def _routes(advisor: Advisor, question: Question, card: PolicyCard, turns: Turns) -> APIRouter:
    router = APIRouter()
    told = card.model_dump_json().encode()

    def answer(body: bytes) -> Response:
        try:
            stays, asked = question.read(body)
            advice = advisor.ask(stays).at(asked)
        except ValidationError as error:
            return _refusal(422, refuse_request(error, question.known))
        except EtipsError:
            return _refusal(422, Refusal(detail="the stays cannot be read as the training data"))
        stay, step = stays.decisions()
        content = encode_answers(advisor, advice, stay[asked], step[asked])
        return Response(content, media_type="application/json")

    @router.post(
        RECOMMEND,
        summary="What the policy would do, with support and abstention",
        responses={200: {"model": Recommendation}, **_documented(413, 415, 422, 503)},
        response_class=Response,
    )
    async def recommend(request: Request) -> Response:
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise HTTPException(415)
        body = await request.body()
        return await turns.take(lambda: answer(body))

    @router.get(
        "/v1/policy",
        summary="The model card",
        responses={200: {"model": PolicyCard}, **_documented()},
        response_class=Response,
    )
    async def policy() -> Response:
        return Response(told, media_type="application/json")

    @router.get(
        "/health",
        summary="Whether the service answers",
        responses={200: {"model": Health}, **_documented()},
        response_class=Response,
    )
    async def health() -> Response:
        own = Health(status="ok", version=__version__)
        return Response(own.model_dump_json(), media_type="application/json")

    return router


def _documented(*more: int) -> dict[int | str, dict[str, object]]:
    """Refusals for the description."""
    return {
        status: {"model": Refusal, "description": _REFUSALS[status]}
        for status in (401, 403, 431, *more)
    }


def _described(app: FastAPI, question: Question) -> Callable[[], dict[str, object]]:
    """The description, with the body of a request as this policy's data have it, and the token."""
    plain = app.openapi
    made: dict[str, object] = {}

    def describe() -> dict[str, object]:
        if made:
            return made
        document = plain()
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
        made.update(document)
        return made

    return describe


def _refusal(status: int, refusal: Refusal) -> JSONResponse:
    return JSONResponse(refusal.model_dump(), status_code=status)


async def _invalid(_: Request, __: Exception) -> Response:
    """FastAPI's own answer repeats what was sent."""
    return _refusal(422, Refusal(detail="the request is not as the description says"))


async def _plain(_: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    refused = _refusal(status, Refusal(detail=_WORDS.get(status, "this cannot be answered")))
    headers = getattr(error, "headers", None) or {}
    refused.headers.update({name: own for name, own in headers.items() if name.lower() == "allow"})
    return refused
