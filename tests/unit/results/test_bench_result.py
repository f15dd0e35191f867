"""A bench as data."""

from told_benches import BENCH, ROWS, STANDING

from etips.results.bench_result import Bench
from etips.results.parsing import from_json


def test_it_is_read_back_as_it_was():
    assert from_json(Bench, BENCH.to_json()) == BENCH


def test_a_row_is_found_by_its_method():
    assert STANDING.row("lightgbm") is ROWS[1]
    assert STANDING.row(None) is None
