"""What every test runs under: a watch for pickle (goal F5), and Hypothesis without a stop-watch."""

import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import etips

# Two cores shared with others: a slow example is no fault. Speed has goals of its own.
settings.register_profile("etips", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("etips")

PACKAGE = str(Path(etips.__file__).parent) + "/"
PICKLES: list[str] = []
"""Where etips had something unpickled; stays empty."""


def _watch(event, arguments):
    """Note an unpickling that etips asked for; what an import of a third party does is its own."""
    if event != "pickle.find_class":
        return
    frame = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if "importlib" in file:
            return
        if file.startswith(PACKAGE):
            PICKLES.append(f"{file}:{frame.f_lineno}")
            return
        frame = frame.f_back


sys.addaudithook(_watch)


@pytest.fixture(autouse=True)
def _no_pickle():
    """F5: no test makes etips unpickle anything."""
    before = len(PICKLES)
    yield
    assert PICKLES[before:] == []


def pytest_sessionfinish(session):
    """F5: nor does anything between the tests."""
    if PICKLES:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter):
    for place in PICKLES:
        terminalreporter.write_line(f"unpickled at {place}", red=True)


@pytest.fixture(autouse=True)
def _no_seal_key(monkeypatch):
    monkeypatch.delenv("ETIPS_SEAL_KEY", raising=False)
