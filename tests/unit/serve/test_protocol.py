"""W4 on sockets: heads that are too large or too slow, and many connections at once."""

import socket
import time

import pytest
from running_service import running
from served_runs import TOKEN

from etips.serve import protocol


@pytest.fixture(scope="module")
def port():
    with running() as own:
        yield own


def head(port, *lines):
    own = ("GET /health HTTP/1.1", f"Host: 127.0.0.1:{port}", f"Authorization: Bearer {TOKEN}")
    return "\r\n".join([*own, *lines, "", ""]).encode()


def ask(port, data, timeout=5):
    with socket.create_connection(("127.0.0.1", port), timeout=timeout) as own:
        own.sendall(data)
        return own.recv(65536)


@pytest.mark.parametrize("size", [17_000, 200_000])
def test_headers_that_are_too_large_are_told_so_w4(port, size):
    assert ask(port, head(port, "X: " + "x" * size)).startswith(b"HTTP/1.1 431")


def test_what_is_not_http_is_refused_without_its_words(port):
    answer = ask(port, b"CANARY\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 400")
    assert b"CANARY" not in answer


def test_a_large_body_is_refused_before_it_is_sent_w4(port):
    lines = head(port, "Content-Length: 70000").replace(b"GET /health", b"POST /health")
    assert ask(port, lines).startswith(b"HTTP/1.1 413")


def test_ten_thousand_ranges_cost_nothing_w4(port):
    ranges = "Range: bytes=" + ",".join(f"{n}-{n}" for n in range(1500))
    started = time.perf_counter()
    assert ask(port, head(port, ranges)).startswith(b"HTTP/1.1 200")
    assert time.perf_counter() - started < 1
    ranges = "Range: bytes=" + ",".join(f"{n}-{n}" for n in range(10_000))
    assert ask(port, head(port, ranges)).startswith(b"HTTP/1.1 431")


def test_two_hundred_open_connections_do_not_stop_it_w4(port):
    idle = [socket.create_connection(("127.0.0.1", port), timeout=5) for _ in range(200)]
    for own in idle[::2]:
        own.sendall(b"GET / HT")
    try:
        assert ask(port, head(port)).startswith(b"HTTP/1.1 200")
    finally:
        for own in idle:
            own.close()


def test_a_slow_client_is_cut_off_w4(port, monkeypatch):
    monkeypatch.setattr(protocol, "HEAD_SECONDS", 0.3)
    for first in (b"", b"GET /health HTTP/1.1\r\n"):
        with socket.create_connection(("127.0.0.1", port), timeout=5) as own:
            own.sendall(first) if first else None
            assert own.recv(100) == b""


def test_a_second_request_on_a_connection_is_waited_for_anew_w4(port, monkeypatch):
    monkeypatch.setattr(protocol, "HEAD_SECONDS", 0.3)
    with socket.create_connection(("127.0.0.1", port), timeout=5) as own:
        for _ in range(3):
            own.sendall(head(port))
            answer = b""
            while not answer.endswith(b"}"):
                answer += own.recv(65536)
            assert answer.startswith(b"HTTP/1.1 200")
            time.sleep(0.2)
        own.sendall(b"GET /health")
        assert own.recv(65536) == b""
