"""What every test runs under: a watch for pickle (goal F5), and Hypothesis without a stop-watch."""

import atexit
import gc
import sys

import pytest
import torch
from hypothesis import HealthCheck, settings
from pickle_watch import PICKLES

from etips.machine import still_products

# Two OpenMP threads wait for each other at every small step, for seconds on a busy machine.
torch.set_num_threads(1)
PRODUCTS = still_products()
PRODUCTS.__enter__()  # NumPy's too

# Two cores shared with others: a slow example is no fault. Speed has goals of its own.
# The same examples every time: a change is judged by what it changes. `make test-slow` wanders.
settings.register_profile(
    "etips", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
settings.register_profile("wander", settings.get_profile("etips"), derandomize=False)
settings.load_profile("etips")

NOT_SHIPPED = {
    "ETIPS_MIMIC3_DEMO": "the MIMIC-III demo (open, from PhysioNet)",
    "ETIPS_IST": "the International Stroke Trial (open, IST.csv.gz)",
}
"""Data that tests use where it is at hand, by the variable that says where it is."""


@pytest.fixture(autouse=True)
def _no_pickle():
    """F5: no test makes etips unpickle anything."""
    before = len(PICKLES)
    yield
    assert PICKLES[before:] == []


@pytest.fixture(autouse=True)
def _no_seal_key(monkeypatch):
    monkeypatch.delenv("ETIPS_SEAL_KEY", raising=False)


def pytest_runtest_setup(item):
    if item.get_closest_marker("gpu") and not torch.cuda.is_available():
        pytest.skip("needs a GPU")


class Workers:
    """F5 where the tests run in several processes: each tells what it unpickled between tests."""

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node):
        PICKLES.extend(getattr(node, "workeroutput", {}).get("pickles", ()))


def pytest_configure(config):
    config.pluginmanager.register(Workers())
    atexit.register(let_go, config.pluginmanager.rewrite_hook)


def let_go(loader):
    """Let the tests go before Python ends.

    Every module that pytest loaded has them by way of its loader: loader, config, session, tests
    and what they were given. At the end Python clears modules without looking for rings any more,
    so all of this would stay, and with it types of DuckDB, which would then complain of a leak. So
    would the frames of a test that failed, which Python keeps for a debugger.
    """
    loader.config = loader.session = None
    for name in ("last_exc", "last_type", "last_value", "last_traceback"):
        vars(sys).pop(name, None)
    gc.collect()


def pytest_sessionfinish(session):
    """F5: nor does anything between the tests."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["pickles"] = PICKLES
    if PICKLES:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter):
    """Last of all, below pytest's own list of what was skipped."""
    yield
    for place in PICKLES:
        terminalreporter.write_line(f"unpickled at {place}", red=True)
    reasons = [str(report.longrepr) for report in terminalreporter.stats.get("skipped", ())]
    for variable, data in NOT_SHIPPED.items():
        skipped = sum(variable in reason for reason in reasons)
        if skipped:
            line = f"{skipped} tests on {data} were skipped; to run them: {variable}=PATH make test"
            terminalreporter.write_line(line)
