"""Every engine offers what the others offer."""

import inspect

import pytest

from etips.cohorts.engines.duckdb_source import DuckDBSource
from etips.cohorts.engines.raw_source import RawSource
from etips.cohorts.engines.server_source import ServerSource

METHODS = [
    name for name, part in vars(RawSource).items() if inspect.isfunction(part) and name[0] != "_"
]


@pytest.mark.parametrize("engine", [DuckDBSource, ServerSource])
@pytest.mark.parametrize("method", METHODS)
def test_an_engine_has_every_method_with_the_same_arguments(engine, method):
    ours, theirs = (inspect.signature(getattr(kind, method)) for kind in (RawSource, engine))
    assert list(ours.parameters) == list(theirs.parameters)


def test_there_are_methods_to_have():
    assert {"tables", "table", "begin", "fetch", "store", "close"} == set(METHODS)
