"""Who is answered, how much of a request is taken, and how long a client may be (W1, W4, W5).

Nothing of a request is repeated, in an answer or in the log: a line of the log has the method, the
route as the service calls it, the status and the time it took.
"""

import asyncio
import hmac
import logging
import os
import re
import secrets
import socket
import struct
import sys
import time
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from types import MappingProxyType
from urllib.parse import urlsplit

import h11
import uvicorn
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from etips.errors import FileError, SettingError

RECOMMEND = "/v1/recommend"
MAX_HEADERS, MAX_BODY = 16 * 1024, 64 * 1024
"""Bytes of all headers of a request, and of its body."""

MAX_BATCH = 16 * 1024 * 1024
"""Bytes of a request for recommendations: about three thousand stays of the paper's cohort."""

HEAD_SECONDS, BODY_SECONDS, ANSWER_SECONDS = 10.0, 10.0, 30.0
"""For the head of a request to arrive, for its body, and for an answer to be made, or be read."""

TOKEN_VARIABLE = "ETIPS_SERVE_TOKEN"  # noqa: S105  # its name, not a token
"""Where a token may stand, so that the address stays the same."""

HEADERS = MappingProxyType(
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
"""Of every answer, those of the server itself too."""

_MIN_TOKEN, _MAX_TOKEN_FILE = 16, 4096
_ORIGIN = re.compile(r"https://[a-z0-9.-]+(:[1-9][0-9]{0,4})?")
_MAX_CONNECTIONS = 1000
_SYSTEM_BUFFER = 64 * 1024  # bytes of an answer that are out of our sight once they are written
_RESET = struct.pack("ii", 1, 0)  # ends a connection with all that the system still holds for it
_ONCE = ("host", "origin", "authorization", "content-length", "cookie")
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
_PHRASES = {400: b"Bad Request", 431: b"Request Header Fields Too Large"}
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
        if self.origin is not None and not _ORIGIN.fullmatch(self.origin):
            rule = "must be https:// and a name, and nothing after"
            raise SettingError("--origin", rule, fix="For example --origin https://etips.example.")
        if not re.fullmatch(rf"[A-Za-z0-9_-]{{{_MIN_TOKEN},}}", self.token):
            rule = f"must be {_MIN_TOKEN} or more letters, digits, - and _"
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


def read_token(file: Path | None) -> str | None:
    """The token of a file, or of the environment; None if neither has one."""
    if file is None:
        return os.environ.get(TOKEN_VARIABLE) or None
    try:
        with file.open(encoding="utf-8") as text:
            return text.read(_MAX_TOKEN_FILE).strip()  # a device has no end
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(str(file), "must be a text file that holds the token") from error


def refuse(status: int) -> Response:
    """The answer to a request that is not served; what else comes on its connection is not read."""
    headers = {"connection": "close"}
    if status == 401:
        headers["www-authenticate"] = "Bearer"
    detail = _DETAILS.get(status, "this cannot be answered")
    return JSONResponse({"detail": detail, "faults": []}, status, headers)


class Gate:
    """Middleware around everything else, so that an unknown page needs the token as well."""

    def __init__(self, app: ASGIApp, address: Address) -> None:
        self._app, self._address = app, address

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or refuse it."""
        started, status, refused = time.perf_counter(), 0, 0

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        # The server leaves the body of an answer to HEAD out.
        inside = {**scope, "method": "GET"} if scope["method"] == "HEAD" else scope
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
        headers, address = request.headers, self._address
        if sum(len(name) + len(value) + 4 for name, value in headers.raw) > MAX_HEADERS:
            raise HTTPException(431)
        if any(len(headers.getlist(name)) > 1 for name in _ONCE):
            raise HTTPException(400)
        if not address.serves(headers.get("host", ""), headers.get("origin")):
            raise HTTPException(403)
        first = request.url.path == "/" and request.method == "GET"
        visit = request.query_params.get("token", "") if first else ""
        kind, _, bearer = headers.get("authorization", "").partition(" ")
        own = kind.lower() == "bearer"
        token = visit or (bearer.strip() if own else request.cookies.get(address.cookie, ""))
        if not address.is_token(token):
            raise HTTPException(401)
        if not own and request.method != "GET" and "origin" not in headers:
            raise HTTPException(403)  # a browser says where a page that posts comes from
        app, body = self._app, await _read(request)
        if visit:  # keep the token as a cookie, which no script and no other site gets
            kept = f"{address.cookie}={token}; Path=/; HttpOnly; SameSite=Strict"
            kept += "" if address.origin is None else "; Secure"
            app = Response(status_code=303, headers={"location": "/", "set-cookie": kept})
        messages = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def receive() -> Message:
            return next(messages, None) or await request.receive()

        await asyncio.wait_for(app(request.scope, receive, answer), ANSWER_SECONDS)


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
        async with asyncio.timeout(BODY_SECONDS):
            async for part in request.stream():
                body += part
                if len(body) > limit:
                    raise HTTPException(413)
    except TimeoutError:
        raise HTTPException(408) from None
    return bytes(body)


def listen(address: Address) -> socket.socket:
    """A socket that is bound there; refused where the port is taken."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # else Nagle waits 40 ms
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SYSTEM_BUFFER)
    try:
        bound.bind((address.host, address.port))
    except OSError as error:
        bound.close()
        place = f"{address.host}, port {address.port}"
        fix = "Another program may have it: --port 0 takes a free one."
        raise SettingError(place, "cannot be listened on", fix=fix) from error
    return bound


def make_server(app: ASGIApp, address: Address) -> uvicorn.Server:
    """A server of the application behind its gate."""
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # may repeat what was sent
    config = uvicorn.Config(
        Gate(app, address),
        http=TimedProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        headers=list(HEADERS.items()),
        h11_max_incomplete_event_size=MAX_HEADERS,
        limit_concurrency=_MAX_CONNECTIONS,
        timeout_keep_alive=10,
        timeout_graceful_shutdown=5,
    )
    return uvicorn.Server(config)


class TimedProtocol(H11Protocol):
    """uvicorn's HTTP with two more deadlines: for the head of a request, and to read an answer.

    Goal W4. uvicorn would wait for ever for a client that sends its headers drop by drop, or that
    does not read, and calls headers that are too large invalid.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=0)  # any byte not taken pauses the writing
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._start("head", HEAD_SECONDS)

    def data_received(self, data: bytes) -> None:
        """Take what came; stop waiting once the head is there."""
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop("head")
        elif "head" not in self._timers and not self.transport.is_closing():
            self._start("head", HEAD_SECONDS)

    def pause_writing(self) -> None:
        """Begin to wait for the client to read."""
        super().pause_writing()
        self._start("unread", ANSWER_SECONDS)

    def resume_writing(self) -> None:
        """Stop waiting: all was taken."""
        self._stop("unread")
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop("head")
        self._stop("unread")
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002  # uvicorn's own words
        """Say what is wrong with the head: its form, or its size."""
        hint = getattr(sys.exc_info()[1], "error_status_hint", 400)
        status = hint if hint in _PHRASES else 400
        headers = [(b"connection", b"close"), (b"content-length", b"0")]
        headers += self.server_state.default_headers
        answer = h11.Response(status_code=status, headers=headers, reason=_PHRASES[status])
        for event in (answer, h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _start(self, what: str, seconds: float) -> None:
        self._timers[what] = self.loop.call_later(seconds, self._cut, what)

    def _stop(self, what: str) -> None:
        if what in self._timers:
            self._timers.pop(what).cancel()

    def _cut(self, what: str) -> None:
        del self._timers[what]
        if what == "unread":
            own = self.transport.get_extra_info("socket")
            own.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        if what == "unread" or self.cycle is None or self.cycle.response_complete:
            self.transport.abort()


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
