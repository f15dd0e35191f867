"""W2 and W6: requests made up from the description break nothing and change no file."""

import hashlib
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from running_service import running
from served_runs import BEARER, fitted

from etips.policies.policy_files import save_policy
from etips.serve.service import open_run as open_desk

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")
N = int(os.environ.get("ETIPS_REQUESTS", "300"))
"""Requests in all; ETIPS_REQUESTS=5000 for the long run."""

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    place = tmp_path_factory.mktemp("served") / "run"
    save_policy(fitted(), place)
    return place


def marks(folder: Path):
    return {
        (path.relative_to(folder), hashlib.sha256(path.read_bytes()).hexdigest())
        for path in folder.rglob("*")
        if path.is_file()
    }


def make_requests(schema, path, mode, n):
    """Statuses of that many requests, each held against the description."""
    method = "POST" if path == "/v1/recommend" else "GET"
    told = []

    @settings(
        max_examples=n,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
        database=None,
    )
    @given(case=schema[path][method].as_strategy(generation_mode=mode))
    def ask(case):
        told.append(case.call_and_validate(headers=BEARER, timeout=60).status_code)

    ask()
    return told


def test_requests_made_up_from_the_description_break_nothing_and_change_nothing_w2_w6(run):
    before, modes = marks(run), schemathesis.GenerationMode
    with running(open_desk(run, None, key=b"key")) as port:
        base = f"http://127.0.0.1:{port}"
        schema = schemathesis.openapi.from_url(f"{base}/openapi.json", headers=BEARER)
        good = make_requests(schema, "/v1/recommend", modes.POSITIVE, round(0.5 * N))
        bad = make_requests(schema, "/v1/recommend", modes.NEGATIVE, round(0.5 * N))
        for path in ("/v1/policy", "/health"):
            assert set(make_requests(schema, path, modes.POSITIVE, 5)) == {200}
    assert len(good) + len(bad) >= N
    assert set(good) == {200}
    assert 422 in bad
    assert max(bad) < 500
    assert marks(run) == before
