"""W3: no part of a request is ever a path: 400 tries to get at files outside, on a real socket."""

import socket
import sys
from itertools import product

import pytest
from running_service import running
from served_runs import TOKEN, fitted, ward

from etips.policies.policy_files import save_policy
from etips.serve.service import open_run as open_desk

SECRET = "CANARY-OUTSIDE-5519"
PARENTS = [
    "..",
    "%2e%2e",
    "%252e%252e",
    "..%5c",
    "%2e%2e%5c",
    "..;",
    "....",
    "..%00",
    "%c0%ae%c0%ae",
    "%uff0e%uff0e",
    ".%2e",
    "%2e.",
]
SLASHES = ["/", "%2f", "%252f", "%5c", "//", "/./"]
STARTS = ["/", "/assets/", "/stays/", "/v1/", "/stays/x/"]
TARGETS = [
    "//proc/self/root/etc/passwd",
    "/proc/self/environ",
    "/etc/passwd%23",
    "/etc/passwd?x=1#y",
    "file:///etc/passwd",
    "%5c%5chost%5cshare%5cx",
    "//host/share/x",
    "/assets/style.css%00.html",
    "/assets/%2fetc%2fpasswd",
    "/assets/../../../policy.json",
    "/stays/~root",
    "/assets/link",
    "/assets/htmx.LICENSE",
    "/assets/serve.css",
    "/?path=../../etc/passwd",
    "/stays?code=../../etc/passwd",
    "/stays?sort=../../etc/passwd&page=../..",
    "/assets/con",
    "/assets/..%2f..%2fetc%2fpasswd",
    "/stays/..%2f..%2fv1%2fpolicy",
]
CORPUS = [
    f"{start}{slash.join([parent] * depth)}{slash}{{file}}"
    for start, parent, slash in product(STARTS, PARENTS, SLASHES)
    for depth in ((3,) if start != "/assets/" else (1, 6))
] + TARGETS
OPENED = []


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("outside")
    (folder / "secret.txt").write_text(SECRET)
    save_policy(fitted(), folder / "run")
    (folder / "link").symlink_to(folder / "secret.txt")
    return folder


def ask(port, target):
    head = f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {TOKEN}\r\n"
    with socket.create_connection(("127.0.0.1", port), timeout=10) as own:
        own.sendall(f"{head}Connection: close\r\n\r\n".encode())
        answer = b""
        while part := own.recv(65536):
            answer += part
    return answer


def test_no_request_gets_at_a_file_outside_w3(place):
    assert len(CORPUS) >= 400
    watching = []
    sys.addaudithook(
        lambda event, details: OPENED.append(str(details[0])) if watching and event == "open" else 0
    )
    with running(open_desk(place / "run", ward(20, seed=1), key=b"key")) as port:
        ask(port, "/assets/style.css")
        watching.append(True)
        answers = {}
        for target in CORPUS:
            answers[target] = ask(port, target.replace("{file}", "secret.txt"))
            if target.endswith("{file}") and len(answers) % 4 == 0:
                answers[target] += ask(port, target.replace("{file}", "etc/passwd"))
        watching.clear()
    outside = [name for name in OPENED if "secret" in name or name.startswith(("/etc", "/proc"))]
    assert outside == []
    for target, answer in answers.items():
        assert SECRET.encode() not in answer, target
        assert b"root:" not in answer, target
        status = int(answer[9:12])
        served = target.startswith(("/?", "/stays?"))
        assert status == 200 if served else status in (400, 404), (target, status)


def test_every_file_that_is_served_is_one_of_a_list_made_at_the_start_w3(place):
    with running(open_desk(place / "run", None, key=b"key")) as port:
        for name in ("style.css", "serve.js", "htmx.min.js", "icon.svg"):
            assert b" 200 OK" in ask(port, f"/assets/{name}")[:20]
        for name in ("serve.css", "htmx.LICENSE", "link", "style.css/", "STYLE.CSS", "", "."):
            assert b" 404 " in ask(port, f"/assets/{name}")[:20]
