"""What every request passes: host, origin, token, size and time, and what every answer carries.

Goals W1, W4 and W5. Nothing of a request is ever repeated, in an answer or in a log: a line of the
log has the method, the route as the service calls it, the status and the time it took.
"""

import asyncio
import hmac
import logging
import time
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import Any, TypeAlias
from urllib.parse import parse_qs

_Text: TypeAlias = str
Scope = MutableMapping[_Text, Any]  # what ASGI calls so: whatever a server tells
Message = MutableMapping[_Text, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

MOST_HEADERS = 16 * 1024
"""Bytes of all headers of a request."""

MOST_BODY = 64 * 1024
"""Bytes of a body, but for the routes that say otherwise."""

READ_SECONDS, ANSWER_SECONDS = 10.0, 30.0
"""For a body to arrive, and for an answer to be found."""

COOKIE = "etips"
"""Name of the cookie that holds the token, before the port."""

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Content security policy of every answer."""

_HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
)
_WORDS = {
    400: "the request is not HTTP as it should be",
    401: "a token is needed: open the address that etips serve printed, or send it as a bearer",
    403: "this host or origin is not served",
    413: "the body is too large",
    408: "the body took too long to arrive",
    431: "the headers are too large",
    500: "something went wrong here; the log says where",
    503: "it took too long: ask for less at once, or try again",
}
_logger = logging.getLogger("etips.serve")


@dataclass(frozen=True)
class Rules:
    """Who is served, and how much of what.

    Args:
        token: That every request must bring.
        hosts: Hosts with their ports that a request may name.
        origins: Origins that a page may have that asks.
        port: Part of the name of the cookie: browsers keep one jar for all ports.
        secure: Whether browsers reach it by https, so that the cookie may only go there.
        bodies: Bytes of a body by path, where more than usual are allowed.
    """

    token: str = field(repr=False)
    hosts: frozenset[str]
    origins: frozenset[str]
    port: int
    secure: bool = False
    bodies: tuple[tuple[str, int], ...] = ()

    @property
    def cookie(self) -> str:
        """Name of the cookie."""
        return f"{COOKIE}-{self.port}"

    def is_token(self, given: str | None) -> bool:
        """Whether it is the token; how long that takes does not tell how much of it is right."""
        return hmac.compare_digest((given or "").encode("utf-8", "replace"), self.token.encode())


class _Refused(Exception):  # noqa: N818  # not an error of the service
    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class Gate:
    """An application behind these checks.

    Args:
        app: The application.
        rules: Who is served.
    """

    def __init__(self, app: App, rules: Rules) -> None:
        self._app, self._rules = app, rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or refuse it."""
        if scope["type"] != "http":
            return
        started, answer = time.perf_counter(), _Answer(send, head=scope["method"] == "HEAD")
        try:
            await self._serve(scope, receive, answer)
        except _Refused as refused:
            await answer.refuse(refused.status)
        except TimeoutError:
            await answer.refuse(503)
        except Exception as error:  # noqa: BLE001  # its text may hold a value; its place does not
            _logger.error("%s at %s", type(error).__name__, _place(error))  # noqa: TRY400
            await answer.refuse(500)
        route = getattr(scope.get("route"), "path", "-")
        took = 1000 * (time.perf_counter() - started)
        method = scope["method"] if scope["method"] in ("GET", "HEAD", "POST") else "-"
        _logger.info("%s %s %s %.0f ms", method, route, answer.status, took)

    async def _serve(self, scope: Scope, receive: Receive, answer: "_Answer") -> None:
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        if sum(len(name) + len(value) + 4 for name, value in headers) > MOST_HEADERS:
            raise _Refused(431)
        by_name = _single(headers)
        origin = by_name.get("origin")
        if by_name.get("host", "").lower() not in self._rules.hosts:
            raise _Refused(403)
        if origin is not None and origin not in self._rules.origins:
            raise _Refused(403)
        if await self._enters(scope, answer):
            return
        by_cookie = self._admit(by_name)
        if by_cookie and origin is None and scope["method"] not in ("GET", "HEAD"):
            raise _Refused(403)  # a browser tells where a page that posts comes from
        inside = dict(scope, method="GET") if scope["method"] == "HEAD" else scope
        body = b"" if inside["method"] == "GET" else await self._read(scope, by_name, receive)
        served = self._app(inside, _replay(body, receive), answer)
        await asyncio.wait_for(served, ANSWER_SECONDS)
        scope.setdefault("route", inside.get("route"))

    async def _enters(self, scope: Scope, answer: "_Answer") -> bool:
        """Whether it is the first visit, with the token in the address: keep it, clear the address.

        A browser sends what it keeps to no other site, and lets no script read it.
        """
        if scope["path"] != "/" or scope["method"] != "GET":
            return False
        given = parse_qs(scope["query_string"].decode("latin-1"), max_num_fields=8).get("token")
        if given is None:
            return False
        if not self._rules.is_token(given[0]):
            raise _Refused(401)
        kept = f"{self._rules.cookie}={self._rules.token}; Path=/; HttpOnly; SameSite=Strict"
        kept += "; Secure" if self._rules.secure else ""
        headers = [(b"location", b"/"), (b"set-cookie", kept.encode()), (b"content-length", b"0")]
        await answer({"type": "http.response.start", "status": 303, "headers": headers})
        await answer({"type": "http.response.body", "body": b""})
        return True

    def _admit(self, headers: dict[str, str]) -> bool:
        """Refuse whoever brings no token; True if it came as a cookie."""
        kind, _, given = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer":
            if self._rules.is_token(given.strip()):
                return False
            raise _Refused(401)
        try:
            kept = SimpleCookie(headers.get("cookie", "")).get(self._rules.cookie)
        except CookieError:
            kept = None
        if not self._rules.is_token(None if kept is None else kept.value):
            raise _Refused(401)
        return True

    async def _read(self, scope: Scope, headers: dict[str, str], receive: Receive) -> bytes:
        """The body; one that says that it is too large is refused unread."""
        most = dict(self._rules.bodies).get(scope["path"], MOST_BODY)
        length = headers.get("content-length", "0")
        if not (length.isascii() and length.isdecimal()):
            raise _Refused(400)
        if int(length[:20]) > most:
            raise _Refused(413)
        try:
            return await asyncio.wait_for(_collect(receive, most), READ_SECONDS)
        except TimeoutError:
            raise _Refused(408) from None


class _Answer:
    """Where an answer goes: headers are added, a body that was not asked for is left out."""

    def __init__(self, send: Send, *, head: bool) -> None:
        self._send, self._head = send, head
        self.status = 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message = dict(message, headers=[*message.get("headers", ()), *_HEADERS])
        elif self._head:
            message = {"type": "http.response.body", "body": b"", "more_body": False}
        await self._send(message)

    async def refuse(self, status: int) -> None:
        """Answer with the words of a status, if nothing was answered yet."""
        if self.status:
            return
        body = f'{{"detail":"{_WORDS[status]}","faults":[]}}'.encode()
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
        ]
        headers += [(b"www-authenticate", b"Bearer")] if status == 401 else []
        headers += [(b"connection", b"close")] if status in (400, 408, 413, 431) else []
        await self({"type": "http.response.start", "status": status, "headers": headers})
        await self({"type": "http.response.body", "body": body})


def _single(headers: list[tuple[bytes, bytes]]) -> dict[str, str]:
    """Headers by name; those that decide something must come once."""
    once = ("host", "origin", "authorization", "content-length", "cookie")
    made: dict[str, str] = {}
    for name, value in headers:
        key = name.decode("latin-1").lower()
        if key in once and key in made:
            raise _Refused(400)
        made[key] = value.decode("latin-1")
    return made


async def _collect(receive: Receive, most: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _Refused(400)
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > most:
            raise _Refused(413)
        if not message.get("more_body", False):
            return b"".join(parts)


def _replay(body: bytes, receive: Receive) -> Receive:
    """What the application receives: the body that was read, then whatever happens next."""
    told = False

    async def again() -> Message:
        nonlocal told
        if told:
            return await receive()
        told = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


def _place(error: BaseException) -> str:
    """File and line of what went wrong, without a value."""
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    return "?" if at is None else f"{at.tb_frame.f_code.co_filename}:{at.tb_lineno}"
