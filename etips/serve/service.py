"""The application: recommendations, the model card and health as JSON, and the pages."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from etips.errors import EtipsError
from etips.results.records import NOTICE
from etips.serve.fields import Question
from etips.serve.pages import make_pages
from etips.serve.schemas import (
    Health,
    PolicyCard,
    Recommendation,
    Refusal,
    describe_faults,
    encode_answers,
)
from etips.serve.security import RECOMMEND, refuse
from etips.serve.state import ServedRun
from etips.version import __version__

_AT_ONCE = 2
"""Questions that are worked on at the same time; the others wait their turn."""

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


def make_application(run: ServedRun) -> FastAPI:
    """The application; it checks no token, `etips.serve.security.Gate` does."""
    places = asyncio.Semaphore(_AT_ONCE)

    async def in_turn(work: Callable[[], T]) -> T:
        async with places:
            return await run_in_threadpool(work)

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
        return await in_turn(lambda: _recommend(run, question, body))

    @app.get(
        "/v1/policy",
        summary="The model card",
        responses=_responses(PolicyCard),
        response_class=Response,
    )
    async def policy() -> Response:
        return Response(run.card.model_dump_json(), media_type="application/json")

    @app.get(
        "/health",
        summary="Whether the service answers",
        responses=_responses(Health),
        response_class=Response,
    )
    async def health() -> Response:
        own = Health(status="ok", version=__version__)
        return Response(own.model_dump_json(), media_type="application/json")

    app.include_router(make_pages(run, in_turn))
    _describe_requests(app, question)
    return app


def _recommend(run: ServedRun, question: Question, body: bytes) -> Response:
    try:
        stays, asked = question.read(body)
        advice = run.advisor.ask(stays).at(asked)
    except ValidationError as error:
        refused = describe_faults(error, question.known)
        return JSONResponse(refused.model_dump(), 422)
    except EtipsError:
        refused = Refusal(detail="the stays cannot be read as the training data")
        return JSONResponse(refused.model_dump(), 422)
    stay, step = stays.decisions()
    content = encode_answers(run.advisor, advice, stay[asked], step[asked])
    return Response(content, media_type="application/json")


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
    refused = Refusal(detail="the request is not as the description says")
    return JSONResponse(refused.model_dump(), 422)


async def _plain(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    refused = refuse(error.status_code)
    refused.headers.update(
        {name: own for name, own in (error.headers or {}).items() if name.lower() == "allow"}
    )
    return refused
