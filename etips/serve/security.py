"""Who is answered, how much is taken, and what every answer carries.

Goals W1, W4 and W5. Nothing of a request is ever repeated, in an answer or in the log: a line of
the log has the method, the route as the service calls it, the status and the time it took.
"""

import asyncio
import hmac
import logging
import secrets
import time
from dataclasses import dataclass, field
from ipaddress import ip_address
from types import MappingProxyType
from urllib.parse import urlsplit

from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from etips.errors import SettingError

RECOMMEND = "/v1/recommend"
MAX_HEADERS, MAX_BODY = 16 * 1024, 64 * 1024
"""Bytes of all headers of a request, and of its body."""

MAX_BATCH = 16 * 1024 * 1024
"""Bytes of a request for recommendations: about three thousand stays of the paper's cohort."""

READ_SECONDS, ANSWER_SECONDS = 10.0, 30.0
"""For a body to arrive, and for an answer to be found."""

MIN_TOKEN = 16
_TOKEN_LETTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
_ONCE = ("host", "origin", "authorization", "content-length", "cookie")
_HEADERS = MappingProxyType(
    {
        "content-security-policy": (
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
            "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
        ),
        "x-content-type-options": "nosniff",
        "x-frame-options": "DENY",
        "referrer-policy": "no-referrer",
        "cache-control": "no-store",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "permissions-policy": "camera=(), geolocation=(), microphone=()",
    }
)
_DETAILS = MappingProxyType(
    {
        400: "the request is not HTTP as it should be",
        401: "a token is needed: open the address that etips serve printed, or send it as a bearer",
        403: "this host or origin is not served",
        404: "there is no such page",
        405: "this cannot be asked in that way",
        408: "the body took too long to arrive",
        413: "the body is too large",
        415: "the body must be application/json",
        431: "the headers are too large",
        500: "something went wrong here; the log says where",
        503: "it took too long: ask for less at once, or try again",
    }
)
_logger = logging.getLogger("etips.serve")


@dataclass(frozen=True)
class Address:
    """Where the service listens, and the token that every request must bring.

    Args:
        port: 0 takes one that is free; what is asked below needs the real one.
        origin: How browsers reach it where a proxy stands before it: https://etips.example.
    """

    host: str = "127.0.0.1"
    port: int = 8080
    origin: str | None = None
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)

    def __post_init__(self) -> None:
        if self.origin is None and not _is_loopback(self.host):
            fix = "Leave it out, or put a proxy with TLS before it and say --origin https://NAME."
            raise SettingError("--host", "must be this machine's own, 127.0.0.1 or ::1", fix=fix)
        if self.origin is not None and not _is_origin(self.origin):
            rule = "must be https:// and a name, and nothing after"
            raise SettingError("--origin", rule, fix="For example --origin https://etips.example.")
        if len(self.token) < MIN_TOKEN or not set(self.token) <= _TOKEN_LETTERS:
            rule = f"must be {MIN_TOKEN} or more letters, digits, - and _"
            fix = "python -c 'import secrets; print(secrets.token_urlsafe(32))' makes one."
            raise SettingError("the token", rule, fix=fix)

    @property
    def link(self) -> str:
        """What to open in a browser."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.origin or f'http://{host}:{self.port}'}/?token={self.token}"

    @property
    def cookie(self) -> str:
        """Name of the cookie that holds the token; browsers keep one jar for all ports."""
        return f"etips-{self.port}"

    def serves(self, host: str, origin: str | None) -> bool:
        """Whether a request may name this host, and come from a page of this origin."""
        hosts = {f"{name}:{self.port}" for name in ("127.0.0.1", "localhost", "[::1]")}
        origins = {f"http://{name}" for name in hosts}
        if self.origin is not None:
            hosts.add(urlsplit(self.origin).netloc)
            origins.add(self.origin)
        return host.lower() in hosts and (origin is None or origin in origins)

    def is_token(self, given: str) -> bool:
        """Whether it is the token, in a time that does not depend on how much of it is right."""
        return hmac.compare_digest(given.encode("utf-8", "replace"), self.token.encode())


def refuse(status: int) -> Response:
    """The answer to a request that is not served."""
    headers = {"www-authenticate": "Bearer"} if status == 401 else {}
    if status in (400, 408, 413, 431):  # the rest of the request is not read
        headers = {"connection": "close"}
    detail = _DETAILS.get(status, "this cannot be answered")
    return JSONResponse({"detail": detail, "faults": []}, status, headers)


class Gate:
    """Middleware around everything else, so that an unknown page needs the token as well."""

    def __init__(self, app: ASGIApp, address: Address) -> None:
        self._app, self._address = app, address

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or refuse it."""
        started, status = time.perf_counter(), 0

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        refused = 0
        head = scope["method"] == "HEAD"  # the server leaves the body out
        inside = {**scope, "method": "GET"} if head else scope
        try:
            await self._serve(Request(inside, receive), answer)
        except HTTPException as error:
            refused = error.status_code
        except ClientDisconnect:
            refused = 400
        except TimeoutError:
            refused = 503
        except Exception as error:  # noqa: BLE001  # its text may hold a value; its place does not
            _logger.error("%s at %s", type(error).__name__, _place(error))  # noqa: TRY400
            refused = 500
        if refused and not status:
            await refuse(refused)(scope, receive, answer)
        route = getattr(inside.get("route"), "path", "-")
        took = 1000 * (time.perf_counter() - started)
        method = scope["method"] if scope["method"] in ("GET", "HEAD", "POST") else "-"
        _logger.info("%s %s %s %.0f ms", method, route, status, took)

    async def _serve(self, request: Request, answer: Send) -> None:
        headers = request.headers
        if sum(len(name) + len(value) + 4 for name, value in headers.raw) > MAX_HEADERS:
            raise HTTPException(431)
        if any(len(headers.getlist(name)) > 1 for name in _ONCE):
            raise HTTPException(400)
        if not self._address.serves(headers.get("host", ""), headers.get("origin")):
            raise HTTPException(403)
        given = request.query_params.get("token")
        if given and request.url.path == "/" and request.method == "GET":
            response = self._enter(given)
            await response(request.scope, request.receive, answer)
            return
        self._admit(request)
        body = b"" if request.method == "GET" else await _read(request)
        messages = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def receive() -> Message:
            return next(messages, None) or await request.receive()

        await asyncio.wait_for(self._app(request.scope, receive, answer), ANSWER_SECONDS)

    def _enter(self, given: str) -> Response:
        """The first visit, with the token in the address: keep it as a cookie, clear the address.

        A browser sends the cookie to no other site, and lets no script read it.
        """
        if not self._address.is_token(given):
            raise HTTPException(401)
        kept = f"{self._address.cookie}={given}; Path=/; HttpOnly; SameSite=Strict"
        kept += "" if self._address.origin is None else "; Secure"
        return Response(status_code=303, headers={"location": "/", "set-cookie": kept})

    def _admit(self, request: Request) -> None:
        """Refuse a request without the token, and one that another site's page may have posted."""
        kind, _, given = request.headers.get("authorization", "").partition(" ")
        bearer = kind.lower() == "bearer"
        token = given.strip() if bearer else request.cookies.get(self._address.cookie, "")
        if not self._address.is_token(token):
            raise HTTPException(401)
        if not bearer and request.method != "GET" and "origin" not in request.headers:
            raise HTTPException(403)  # a browser says where a page that posts comes from


async def _read(request: Request) -> bytes:
    """The body; one that says that it is too large is refused unread."""
    limit = MAX_BATCH if request.url.path == RECOMMEND else MAX_BODY
    length = request.headers.get("content-length", "0")
    if not (length.isascii() and length.isdecimal()):
        raise HTTPException(400)
    if int(length[:20]) > limit:
        raise HTTPException(413)
    body = bytearray()
    try:
        async with asyncio.timeout(READ_SECONDS):
            async for part in request.stream():
                body += part
                if len(body) > limit:
                    raise HTTPException(413)
    except TimeoutError:
        raise HTTPException(408) from None
    return bytes(body)


def _place(error: BaseException) -> str:
    """File and line of what went wrong, without a value."""
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    return "?" if at is None else f"{at.tb_frame.f_code.co_filename}:{at.tb_lineno}"


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _is_origin(origin: str) -> bool:
    try:
        parts = urlsplit(origin)
        there = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return False
    rest = parts.path or parts.query or parts.fragment or parts.username
    return there and not rest and parts.scheme == "https" and origin == origin.lower()
