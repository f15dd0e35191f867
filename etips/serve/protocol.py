"""HTTP as uvicorn speaks it, with a limit on how long and how large the head of a request may be.

Goal W4: a client that sends its headers drop by drop is cut off, and headers that are too large are
told so, where uvicorn would wait for ever and call them invalid.
"""

import asyncio
import sys

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 10.0
"""For the head of a request to arrive."""

_PHRASES = {400: b"Bad Request", 431: b"Request Header Fields Too Large"}


class PatientProtocol(H11Protocol):
    """The protocol, patient for so long and no longer."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Take what came; stop waiting once the head is there."""
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop_waiting()
        elif self._deadline is None and not self.transport.is_closing():
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nobody is there to wait for."""
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

    def _wait(self) -> None:
        self._deadline = self.loop.call_later(HEAD_SECONDS, self._cut)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _cut(self) -> None:
        self._deadline = None
        idle = self.cycle is None or self.cycle.response_complete
        if idle and not self.transport.is_closing():
            self.transport.close()
