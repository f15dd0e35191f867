"""W1, W4 and W5: who is let in, how much, and what is said to whoever is not."""

import asyncio
import logging

import pytest
from served_runs import BEARER, PORT, TOKEN, client, desk, gated, question

from etips.serve import gate
from etips.serve.gate import Gate, Rules

CANARY = "CANARY7731"
ROUTES = ["/", "/health", "/v1/policy", "/openapi.json", "/nowhere"]
RULES = Rules(TOKEN, frozenset({"own:1"}), frozenset({"http://own:1"}), 1)


def call(app, method="GET", path="/", headers=(), messages=(), query=b""):
    """A request in the form that a server hands on."""
    sent, told = [], iter(messages)

    async def receive():
        return next(told, {"type": "http.disconnect"})

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "method": method, "path": path, "query_string": query}
    asyncio.run(app({**scope, "headers": list(headers)}, receive, send))
    return sent


def plain(seen=None):
    """An application that says yes to everything."""

    async def app(scope, receive, send):
        if seen is not None:
            seen.append((await receive()).get("body"))
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"yes"})

    return app


ENTERS = ((b"host", b"own:1"), (b"authorization", f"Bearer {TOKEN}".encode()))


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
    assert RULES.is_token(TOKEN)
    assert not RULES.is_token("ü")
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


def test_head_is_get_without_a_body_w1():
    answer = client().request("HEAD", "/health")
    assert (answer.status_code, answer.content) == (200, b"")


def test_a_large_body_is_refused_before_it_is_read_w4():
    seen = []
    large = str(gate.MOST_BODY + 1).encode()
    sent = call(Gate(plain(seen), RULES), "POST", headers=[*ENTERS, (b"content-length", large)])
    assert (sent[0]["status"], seen) == (413, [])


def test_a_body_that_hides_its_size_is_cut_at_the_limit_w4():
    seen, taken = [], []

    def parts():
        for number in range(1000):
            taken.append(number)
            yield {"type": "http.request", "body": b"x" * 4096, "more_body": True}

    sent = call(Gate(plain(seen), RULES), "POST", headers=ENTERS, messages=parts())
    assert (sent[0]["status"], seen) == (413, [])
    assert len(taken) == gate.MOST_BODY // 4096 + 1


def test_a_body_that_does_not_come_is_not_waited_for_w4(monkeypatch):
    monkeypatch.setattr(gate, "READ_SECONDS", 0.05)

    async def ask():
        sent = []

        async def send(message):
            sent.append(message)

        scope = {"type": "http", "method": "POST", "path": "/", "query_string": b""}
        await Gate(plain(), RULES)({**scope, "headers": list(ENTERS)}, asyncio.Event().wait, send)
        return sent

    assert asyncio.run(ask())[0]["status"] == 408


def test_an_answer_that_takes_too_long_is_given_up_w4(monkeypatch):
    monkeypatch.setattr(gate, "ANSWER_SECONDS", 0.05)

    async def app(*_):
        await asyncio.sleep(10)

    assert call(Gate(app, RULES), headers=ENTERS)[0]["status"] == 503


def test_large_headers_are_refused_w4():
    large = [*ENTERS, (b"x-large", b"x" * gate.MOST_HEADERS)]
    assert call(Gate(plain(), RULES), headers=large)[0]["status"] == 431


def test_headers_that_decide_come_once():
    assert call(Gate(plain(), RULES), headers=[*ENTERS, ENTERS[0]])[0]["status"] == 400


def test_a_fault_tells_its_place_to_the_log_and_nothing_to_the_client_w5(caplog):
    async def app(*_):
        raise ValueError(CANARY)

    with caplog.at_level(logging.DEBUG):
        sent = call(Gate(app, RULES), headers=ENTERS)
    assert sent[0]["status"] == 500
    assert "ValueError at" in caplog.text
    for text in (str(sent), caplog.text):
        assert CANARY not in text
    for word in ("Traceback", "gate.py", "/"):
        assert word not in sent[1]["body"].decode()


def test_nothing_of_a_request_is_repeated_in_answers_or_logs_w5_p1(caplog):
    body = question()
    body["stays"][0]["steps"][0]["values"]["MeanBP"] = CANARY
    asks = [
        ("POST", "/v1/recommend", {"json": body}),
        ("POST", "/v1/recommend", {"json": {CANARY: 1}}),
        ("POST", "/v1/recommend", {"content": CANARY, "headers": {"content-type": CANARY}}),
        (
            "POST",
            "/v1/recommend",
            {"content": CANARY, "headers": {"content-type": "application/json"}},
        ),
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


def test_every_answer_carries_a_strict_policy():
    for path in ROUTES:
        headers = client().get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["cache-control"] == "no-store"


def test_what_is_not_http_is_not_answered():
    sent = []
    asyncio.run(gated(desk())({"type": "websocket"}, None, sent.append))
    assert sent == []
