"""`etips serve` as a program: what it prints, answers and logs, and how it ends."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request

import pytest
from commands import refuse
from served_runs import TOKEN, fitted, question, ward

from etips.data.storage import save_trajectories
from etips.policies.policy_files import save_policy

pytest.importorskip("fastapi")
WATCH = """
import sys
def watch(event, details):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.sendto", "socket.bind"):
        address = details[1] if event != "socket.getaddrinfo" else details[0]
        host = str(address[0] if isinstance(address, tuple) else address)
        if host not in ("127.0.0.1", "::1", "localhost") and not host.startswith("/"):
            print("went to", host, flush=True)
sys.addaudithook(watch)
sys.argv = ["etips", *{arguments!r}]
from etips.cli.main import main
main()
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("service")
    save_policy(fitted(), folder / "run")
    save_trajectories(ward(20, seed=1), folder / "data", overwrite=False)
    return folder


def test_it_serves_this_machine_only_logs_no_value_and_ends_quietly_p1_p4(place):
    arguments = ["serve", "run", "--data", "data", "--port", "0"]
    process = subprocess.Popen(
        [sys.executable, "-c", WATCH.format(arguments=arguments)],
        cwd=place,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "ETIPS_SERVE_TOKEN": TOKEN},
    )
    try:
        first = process.stdout.readline()
        port = int(re.search(rf"^open http://127\.0\.0\.1:(\d+)/\?token={TOKEN}$", first)[1])
        body = question()
        body["stays"][0]["static"]["age"] = 77.125
        asked = urllib.request.Request(
            f"http://127.0.0.1:{port}/v1/recommend",
            json.dumps(body).encode(),
            {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(asked, timeout=60) as answer:
            assert len(json.load(answer)["decisions"]) == 1
    finally:
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=60)
    assert process.returncode == 0, rest
    assert "POST /v1/recommend 200" in rest
    for secret in ("went to", "77.125", "CANARY", TOKEN, "Traceback"):
        assert secret not in rest


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--host", "0.0.0.0"], "--host: must be this machine's own"),
        (["--origin", "http://a.example"], "--origin: must be https://"),
        (["--token-file", "nowhere"], "nowhere: must be a text file"),
        (["--stay", "x"], "column options: go with --data"),
    ],
)
def test_what_is_not_safe_or_does_not_fit_is_refused_in_a_line(place, more, words, monkeypatch):
    monkeypatch.delenv("ETIPS_SERVE_TOKEN", raising=False)
    assert words in refuse("serve", place / "run", "--port", "0", *more)


def test_a_port_that_is_taken_and_a_run_that_is_none_are_refused(place):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        told = refuse("serve", place / "run", "--port", port)
    assert "--port 0 takes a free one" in told
    refuse("serve", place / "data", "--port", "0")
    refuse("serve", place / "nowhere", "--port", "0", "--data", place / "data")
