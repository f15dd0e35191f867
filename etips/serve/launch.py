"""The service on a port of this machine, until somebody stops it."""

import logging
import os
import secrets
import socket
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

import uvicorn

from etips.errors import FileError, SettingError
from etips.serve.gate import MOST_HEADERS, App, Gate, Rules
from etips.serve.protocol import PatientProtocol
from etips.serve.service import MOST_BATCH, RECOMMEND

TOKEN_VARIABLE = "ETIPS_SERVE_TOKEN"  # noqa: S105  # its name, not a token
"""Where a token may stand, so that the address stays the same."""

LEAST_TOKEN = 16
_LETTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
_MOST_CONNECTIONS = 1000


@dataclass(frozen=True)
class Address:
    """Where the service is, and under which name it is reached.

    Args:
        host: Address that it listens on.
        port: Port; 0 takes one that is free.
        origin: How browsers reach it, https://etips.example say, where a proxy stands before it.
        token: That every request must bring.
    """

    host: str = "127.0.0.1"
    port: int = 8080
    origin: str | None = None
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)

    def __post_init__(self) -> None:
        if not _is_loopback(self.host) and self.origin is None:
            fix = "Leave it out, or put a proxy with TLS before it and say --origin https://NAME."
            raise SettingError("--host", "must be this machine's own, 127.0.0.1 or ::1", fix=fix)
        if self.origin is not None and not _is_origin(self.origin):
            fix = "For example --origin https://etips.example."
            raise SettingError(
                "--origin", "must be https:// and a name, and nothing after", fix=fix
            )
        if len(self.token) < LEAST_TOKEN or not set(self.token) <= _LETTERS:
            rule = f"must be {LEAST_TOKEN} or more letters, digits, - and _"
            raise SettingError(
                "the token",
                rule,
                fix="python -c 'import secrets; print(secrets.token_urlsafe(32))' makes one.",
            )


def read_token(file: Path | None) -> str | None:
    """The token of a file or of the environment; None where there is neither."""
    if file is None:
        return os.environ.get(TOKEN_VARIABLE) or None
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(str(file), "must be a text file that holds the token") from error


def listen(address: Address) -> socket.socket:
    """A socket that listens there; refused where the port is taken."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    own = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # else Nagle waits 40 ms
    own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        own.bind((address.host, address.port))
    except OSError as error:
        own.close()
        fix = "Another program may have it: --port 0 takes a free one."
        place = f"{address.host}, port {address.port}"
        raise SettingError(place, "cannot be listened on", fix=fix) from error
    return own


def rules_of(address: Address, port: int) -> Rules:
    """Who is served at an address, once its port is known."""
    hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")}
    origins = {f"http://{host}" for host in hosts}
    secure = address.origin is not None
    if address.origin is not None:
        hosts.add(urlsplit(address.origin).netloc.lower())
        origins = origins | {address.origin}
    return Rules(
        token=address.token,
        hosts=frozenset(hosts),
        origins=frozenset(origins),
        port=port,
        secure=secure,
        bodies=((RECOMMEND, MOST_BATCH),),
    )


def link_to(address: Address, port: int) -> str:
    """What to open in a browser."""
    host = f"[{address.host}]" if ":" in address.host else address.host
    return f"{address.origin or f'http://{host}:{port}'}/?token={address.token}"


def make_server(app: App, address: Address, port: int) -> uvicorn.Server:
    """A server of the application behind the gate."""
    config = uvicorn.Config(
        Gate(app, rules_of(address, port)),
        http=PatientProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        h11_max_incomplete_event_size=MOST_HEADERS,
        limit_concurrency=_MOST_CONNECTIONS,
        timeout_keep_alive=10,
        timeout_graceful_shutdown=5,
    )
    return uvicorn.Server(config)


def run_server(server: uvicorn.Server, own: socket.socket) -> None:
    """Serve until interrupted."""
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # may repeat what was sent
    try:
        server.run(sockets=[own])
    except KeyboardInterrupt:
        return
    finally:
        own.close()


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
