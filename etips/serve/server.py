"""The service on a port of this machine, until it is interrupted."""

import asyncio
import logging
import os
import socket
import sys
from pathlib import Path

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from etips.errors import FileError, SettingError
from etips.serve.security import MAX_HEADERS, Address, Gate

TOKEN_VARIABLE = "ETIPS_SERVE_TOKEN"  # noqa: S105  # its name, not a token
"""Where a token may stand, so that the address stays the same."""

HEAD_SECONDS = 10.0
"""For the head of a request to arrive."""

_MAX_CONNECTIONS = 1000
_PHRASES = {400: b"Bad Request", 431: b"Request Header Fields Too Large"}


def read_token(file: Path | None) -> str | None:
    """The token of a file, or of the environment; None if neither has one."""
    if file is None:
        return os.environ.get(TOKEN_VARIABLE) or None
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(str(file), "must be a text file that holds the token") from error


def listen(address: Address) -> socket.socket:
    """A socket that is bound there; refused where the port is taken."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # else Nagle waits 40 ms
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
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
    config = uvicorn.Config(
        Gate(app, address),
        http=TimedProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        h11_max_incomplete_event_size=MAX_HEADERS,
        limit_concurrency=_MAX_CONNECTIONS,
        timeout_keep_alive=10,
        timeout_graceful_shutdown=5,
    )
    return uvicorn.Server(config)


def run_server(server: uvicorn.Server, bound: socket.socket) -> None:
    """Serve until interrupted."""
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # may repeat what was sent
    try:
        server.run(sockets=[bound])
    except KeyboardInterrupt:
        return
    finally:
        bound.close()


class TimedProtocol(H11Protocol):
    """HTTP as uvicorn speaks it, but it waits for the head of a request only so long.

    Goal W4: uvicorn would wait for ever for a client that sends its headers drop by drop, and call
    headers that are too large invalid.
    """

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._deadline = self.loop.call_later(HEAD_SECONDS, self._cut)

    def data_received(self, data: bytes) -> None:
        """Take what came; stop waiting once the head is there."""
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop_waiting()
        elif self._deadline is None and not self.transport.is_closing():
            self._deadline = self.loop.call_later(HEAD_SECONDS, self._cut)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop_waiting()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002  # uvicorn's own words
        """Say what is wrong with the head: its form, or its size."""
        hint = getattr(sys.exc_info()[1], "error_status_hint", 400)
        status = hint if hint in _PHRASES else 400
        headers = [(b"connection", b"close"), (b"content-length", b"0")]
        answer = h11.Response(status_code=status, headers=headers, reason=_PHRASES[status])
        for event in (answer, h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _cut(self) -> None:
        self._deadline = None
        idle = self.cycle is None or self.cycle.response_complete
        if idle and not self.transport.is_closing():
            self.transport.close()
