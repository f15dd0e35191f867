"""W1, W4 and W5: who is let in, how much of what, and what is said to those who are not."""

import asyncio
import contextlib
import json
import logging
import re
import socket
import threading
import time

import pytest
from running_service import running
from served_runs import BEARER, PORT, TOKEN, client, desk, question

from etips.errors import FileError, SettingError
from etips.serve import gate
from etips.serve.gate import Address, Gate, listen, read_token

CANARY = "CANARY7731"
ROUTES = ["/", "/health", "/v1/policy", "/openapi.json", "/nowhere"]
ADDRESS = Address(port=1, token=TOKEN)
ENTERS = ((b"host", b"localhost:1"), (b"authorization", f"Bearer {TOKEN}".encode()))


def call(app, method="GET", headers=(), messages=None, query="", address=ADDRESS):
    """What the gate before an application sends back; without messages the body is empty."""
    sent, coming = [], iter([{"type": "http.request"}] if messages is None else messages)

    async def receive():
        if messages == ():
            await asyncio.Event().wait()
        return next(coming, {"type": "http.disconnect"})

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "method": method, "path": "/", "query_string": query.encode()}
    asyncio.run(Gate(app, address)({**scope, "headers": list(headers)}, receive, send))
    return sent


async def says_yes(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"yes"})


async def is_not_asked(scope, receive, send):
    raise AssertionError


@pytest.mark.parametrize("path", ROUTES)
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": f"Bearer {TOKEN}x"},
        {"Authorization": f"Bearer {TOKEN[:-1]}"},
        {"Authorization": "Bearer "},
        {"Authorization": f"Basic {TOKEN}"},
        {"Cookie": f"etips-{PORT + 1}={TOKEN}"},
        {"Cookie": "etips-8099="},
        {"Cookie": ";;=;\x7f"},
    ],
)
def test_no_route_answers_without_the_token_w1(path, headers):
    assert client(headers=headers).get(path).status_code == 401


def test_the_token_is_compared_in_constant_time_w1(monkeypatch):
    compared = []
    monkeypatch.setattr(gate.hmac, "compare_digest", lambda a, b: compared.append((a, b)) or a == b)
    assert ADDRESS.is_token(TOKEN)
    assert not ADDRESS.is_token("ü")
    assert len(compared) == 2


@pytest.mark.parametrize("path", ROUTES)
@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": f"127.0.0.1:{PORT + 1}"},
        {"Host": ""},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": f"http://127.0.0.1:{PORT + 1}"},
    ],
)
def test_another_host_or_origin_is_refused_whatever_the_token_w1(path, headers):
    assert client(headers=BEARER | headers).get(path).status_code == 403


def test_the_address_that_is_printed_leaves_a_cookie_and_no_token_in_the_address_w1():
    first = client(headers={}).get(f"/?token={TOKEN}")
    assert (first.status_code, first.headers["location"]) == (303, "/")
    kept = first.headers["set-cookie"]
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(kept.split("; "))
    again = client(headers={"Cookie": kept.partition(";")[0]}).get("/health")
    assert again.status_code == 200
    assert client(headers={}).get("/?token=wrong").status_code == 401


def test_a_cookie_posts_only_from_our_own_pages_w1():
    kept, own = {"Cookie": f"etips-{PORT}={TOKEN}"}, f"http://127.0.0.1:{PORT}"
    assert client(headers=kept).post("/v1/recommend", json=question()).status_code == 403
    there = client(headers=kept | {"Origin": own})
    assert there.post("/v1/recommend", json=question()).status_code == 200


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "STRANGE"])
def test_nothing_can_be_changed_w1(method):
    assert client().request(method, "/health").status_code == 405


def test_a_large_body_is_refused_before_it_is_read_w4():
    for length, status in ((str(gate.MAX_BODY + 1), 413), ("x", 400)):
        sent = call(is_not_asked, "POST", [*ENTERS, (b"content-length", length.encode())])
        assert sent[0]["status"] == status


def test_a_body_that_hides_its_size_is_cut_at_the_limit_w4():
    taken = []

    def parts():
        for number in range(1000):
            taken.append(number)
            yield {"type": "http.request", "body": b"x" * 4096, "more_body": True}

    assert call(is_not_asked, "POST", ENTERS, parts())[0]["status"] == 413
    assert len(taken) == gate.MAX_BODY // 4096 + 1


def test_a_body_that_does_not_come_is_not_waited_for_w4(monkeypatch):
    monkeypatch.setattr(gate, "BODY_SECONDS", 0.05)
    assert call(is_not_asked, "POST", ENTERS, ())[0]["status"] == 408


def test_large_headers_and_repeated_ones_are_refused_w4():
    large = [*ENTERS, (b"x-large", b"x" * gate.MAX_HEADERS)]
    assert call(says_yes, headers=ENTERS)[0]["status"] == 200
    assert call(is_not_asked, headers=large)[0]["status"] == 431
    assert call(is_not_asked, headers=[*ENTERS, ENTERS[0]])[0]["status"] == 400


def test_a_fault_tells_its_place_to_the_log_and_nothing_to_the_client_w5(caplog):
    async def fails(*_):
        raise ValueError(CANARY)

    with caplog.at_level(logging.DEBUG):
        sent = call(fails, headers=ENTERS)
    assert sent[0]["status"] == 500
    assert "ValueError at" in caplog.text
    assert CANARY not in str(sent) + caplog.text
    assert not re.search("Traceback|gate.py|/", sent[1]["body"].decode())


def test_nothing_of_a_request_is_repeated_in_answers_or_logs_w5_p1(caplog):
    body = question()
    body["stays"][0]["steps"][0]["values"]["MeanBP"] = CANARY
    json = {"content-type": "application/json"}
    asks = [
        ("POST", "/v1/recommend", {"json": body}),
        ("POST", "/v1/recommend", {"json": {CANARY: 1}}),
        ("POST", "/v1/recommend", {"content": CANARY, "headers": {"content-type": CANARY}}),
        ("POST", "/v1/recommend", {"content": CANARY, "headers": json}),
        ("GET", f"/{CANARY}", {}),
        ("GET", f"/health?{CANARY}={CANARY}", {}),
        ("GET", f"/stays/{CANARY}?step={CANARY}", {}),
        ("GET", "/stays", {"params": {"sort": CANARY, "show": CANARY, "page": CANARY}}),
        (CANARY, "/health", {}),
        ("GET", "/health", {"headers": {"X-Own": CANARY}}),
        ("GET", "/health", {"headers": {"Origin": CANARY}}),
    ]
    own = client()
    with caplog.at_level(logging.DEBUG):
        for method, path, more in asks:
            answer = own.request(method, path, **more)
            assert answer.status_code < 500
            assert CANARY not in answer.text + str(answer.headers)
    ours = [record.getMessage() for record in caplog.records if record.name == "etips.serve"]
    assert len(ours) == len(asks)
    assert CANARY not in "".join(ours)
    assert ours[5].startswith("GET /health 200")


def test_it_listens_on_this_machine_only_w1():
    assert Address().host == "127.0.0.1"
    for host in ("0.0.0.0", "::", "192.0.2.1", "somewhere.example"):
        with pytest.raises(SettingError, match="--origin https"):
            Address(host=host)
    assert Address(host="0.0.0.0", origin="https://etips.example").host == "0.0.0.0"


@pytest.mark.parametrize(
    "origin",
    ["http://a.example", "https://", "https://a.example/x", "a.example", "https://a:b@c.example"],
)
def test_an_origin_is_https_and_a_name(origin):
    with pytest.raises(SettingError, match="--origin"):
        Address(origin=origin)


def test_tokens_are_long_and_never_the_same_and_come_from_a_file_or_the_environment(
    tmp_path, monkeypatch
):
    assert Address().token != Address().token
    assert len(Address().token) >= 32
    assert TOKEN not in repr(ADDRESS)
    for token in ("short", "with spaces in between it", "ü" * 30):
        with pytest.raises(SettingError, match="token"):
            Address(token=token)
    monkeypatch.delenv("ETIPS_SERVE_TOKEN", raising=False)
    assert read_token(None) is None
    monkeypatch.setenv("ETIPS_SERVE_TOKEN", TOKEN)
    assert read_token(None) == TOKEN
    (tmp_path / "token").write_text(f"{TOKEN[::-1]}\n")
    assert read_token(tmp_path / "token") == TOKEN[::-1]
    with pytest.raises(FileError, match="must be a text file"):
        read_token(tmp_path / "nowhere")


def test_a_port_that_is_taken_is_refused():
    with listen(Address(port=0)) as first:
        first.listen()
        port = first.getsockname()[1]
        with pytest.raises(SettingError, match="cannot be listened on"):
            listen(Address(port=port))


def test_behind_a_proxy_its_name_is_served_and_the_cookie_is_for_https_alone():
    own = Address(origin="https://etips.example", token=TOKEN)
    assert own.link == f"https://etips.example/?token={TOKEN}"
    assert own.serves("etips.example", "https://etips.example")
    assert own.serves("localhost:8080", None)
    plain = Address(token=TOKEN, port=81)
    assert plain.link == f"http://127.0.0.1:81/?token={TOKEN}"
    assert plain.serves("[::1]:81", "http://127.0.0.1:81")
    assert not plain.serves("etips.example", None)
    for address, secure in ((own, True), (plain, False)):
        host = (b"host", f"localhost:{address.port}".encode())
        sent = call(is_not_asked, headers=[host], query=f"token={TOKEN}", address=address)
        assert (b"Secure" in dict(sent[0]["headers"])[b"set-cookie"]) == secure


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
    ranges = "Range: bytes=" + ",".join(f"{n}-{n}" for n in range(1500))
    assert ask(port, head(port, ranges)).startswith(b"HTTP/1.1 200")


def test_an_answer_to_head_has_every_header_and_no_body(port):
    answer = ask(port, head(port, "Connection: close").replace(b"GET", b"HEAD"))
    assert all(f"{k}: {v}" in answer.decode() for k, v in gate.HEADERS.items())
    assert answer.startswith(b"HTTP/1.1 200")
    assert answer.endswith(b"\r\n\r\n")


NO_TOKEN = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
REFUSED = {
    "not HTTP": (400, b"CANARY\r\n\r\n"),
    "headers too large": (431, NO_TOKEN + b"X: " + b"x" * 20_000 + b"\r\n\r\n"),
    "no token": (401, NO_TOKEN + b"\r\n"),
    "no token, a body": (401, NO_TOKEN + b"Content-Length: 100000000\r\n\r\nx"),
    "no token, chunks": (401, NO_TOKEN + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"),
    "another host": (403, b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 70\r\n\r\nx"),
    "odd query": (401, b"GET /?" + b"a=1&" * 200 + b" HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_refusal_has_every_header_repeats_nothing_and_ends_the_connection_w4_w5(port, what):
    status, request = REFUSED[what]
    with socket.create_connection(("127.0.0.1", port), timeout=5) as own:
        own.sendall(request.replace(b"%d", str(port).encode()))
        answer = b""
        with contextlib.suppress(ConnectionResetError):  # what was sent beyond the head is unread
            while part := own.recv(65536):
                answer += part
    assert answer.startswith(b"HTTP/1.1 %d" % status)
    assert b"CANARY" not in answer
    head = answer.partition(b"\r\n\r\n")[0].decode().lower()
    for name, value in gate.HEADERS.items():
        assert f"{name}: {value.lower()}" in head
    assert "default-src 'none'" in head
    assert "unsafe" not in head


def test_two_hundred_open_connections_do_not_stop_it_w4(port):
    idle = [socket.create_connection(("127.0.0.1", port), timeout=5) for _ in range(200)]
    for own in idle[::2]:
        own.sendall(b"GET / HT")
    try:
        assert ask(port, head(port)).startswith(b"HTTP/1.1 200")
    finally:
        for own in idle:
            own.close()


def ends(own):
    """Whether the other end has closed a connection, of which nothing more is read."""
    with contextlib.suppress(ConnectionResetError):
        return own.recv(100) == b""
    return True


def test_a_slow_client_is_cut_off_w4(port, monkeypatch):
    monkeypatch.setattr(gate, "HEAD_SECONDS", 0.3)
    for first in (b"", b"GET /health HTTP/1.1\r\n"):
        with socket.create_connection(("127.0.0.1", port), timeout=5) as own:
            own.sendall(first) if first else None
            assert ends(own)


@pytest.mark.parametrize("path", ["/assets/htmx.min.js", "/nowhere"])
@pytest.mark.parametrize("token", [True, False])
def test_a_client_that_does_not_read_is_cut_off_w4(port, monkeypatch, path, token):
    monkeypatch.setattr(gate, "ANSWER_SECONDS", 0.5)
    request = head(port).replace(b"/health", path.encode())
    if not token:
        request = NO_TOKEN % port + b"\r\n"
    with socket.socket() as own:
        own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        own.settimeout(5)
        own.connect(("127.0.0.1", port))
        started = time.perf_counter()
        with contextlib.suppress(TimeoutError, OSError):
            while time.perf_counter() - started < 5:
                own.sendall(request * 20)  # until nothing more is taken, or it is cut off
        assert time.perf_counter() - started < 4


def test_a_second_request_on_a_connection_is_waited_for_anew_w4(port, monkeypatch):
    monkeypatch.setattr(gate, "HEAD_SECONDS", 0.3)
    with socket.create_connection(("127.0.0.1", port), timeout=5) as own:
        for _ in range(3):
            own.sendall(head(port))
            answer = b""
            while not answer.endswith(b"}"):
                answer += own.recv(65536)
            assert answer.startswith(b"HTTP/1.1 200")
            time.sleep(0.2)
        own.sendall(b"GET /health")
        assert ends(own)


def test_while_a_question_takes_too_long_health_answers_and_it_is_given_up_w4(port, monkeypatch):
    monkeypatch.setattr(gate, "ANSWER_SECONDS", 0.5)
    begun, done = threading.Event(), threading.Event()

    def works(*_):
        begun.set()
        done.wait(10)

    monkeypatch.setattr(type(desk().advisor), "ask", works)
    body = json.dumps(question()).encode()
    lines = (f"Content-Length: {len(body)}", "Content-Type: application/json")
    request = head(port, *lines).replace(b"GET /health", b"POST /v1/recommend") + body
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as own:
            own.sendall(request)
            assert begun.wait(5)
            assert ask(port, head(port)).startswith(b"HTTP/1.1 200")
            assert own.recv(65536).startswith(b"HTTP/1.1 503")
    finally:
        done.set()
