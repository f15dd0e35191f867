"""Benches small enough for a unit test."""

from etips.bench.bench_run import BenchPlan, choose_contestants
from etips.bench.bench_worlds import require_world


def small_plan(worlds=("clinic-usual",), methods=("most-frequent", "random"), **more):
    """A quick bench of some worlds and methods."""
    own = [require_world(name) for name in worlds]
    return BenchPlan(own, choose_contestants(list(methods), peers=False), quick=True, **more)
