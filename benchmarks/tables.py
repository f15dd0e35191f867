"""A long Parquet table into Trajectories: time and memory, beside what pyarrow alone needs.

Run from the root of the project: `python benchmarks/tables.py`. Every figure is a ratio of two
things measured in the same run, so that it means the same on any machine. The table is made in a
temporary folder from a fixed seed and removed afterwards.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from etips.data import Trajectories, read_table

N_FEATURES = 44  # of the Sepsis-3 cohort
STEPS_PER_STAY = 14  # about its mean, 13.3
ROLES = {"stay": "stay", "step": "step", "action": "action", "loss": "loss"}
GROUP = 131_072  # rows in a row group


def make_table(n_steps: int, seed: int = 0) -> pa.Table:
    """A seeded long table in order of stay and step, as a cohort is written."""
    rng = np.random.default_rng(seed)
    stay = np.arange(n_steps) // STEPS_PER_STAY
    columns = {
        "stay": stay + 200_000,
        "step": np.arange(n_steps) % STEPS_PER_STAY,
        "action": rng.integers(0, 25, n_steps),
        "loss": rng.integers(0, 2, n_steps).astype(np.float64),
    }
    for number in range(N_FEATURES):
        columns[f"feature_{number}"] = rng.normal(size=n_steps).astype(np.float32)
    return pa.table(columns)


def array_bytes(data: Trajectories) -> int:
    """Size of everything the stays hold in memory."""
    held = (data.sequence, data.offsets, data.static, data.action, data.loss, data.stay, data.step)
    return sum(values.nbytes for values in held if values is not None)


def alternate(
    first: Callable[[], object], second: Callable[[], object], repeats: int
) -> list[float]:
    """Seconds of each, median then best, taken in turn so that other work hits both alike."""
    seconds: list[list[float]] = [[], []]
    for _ in range(repeats):
        for times, work in zip(seconds, (first, second), strict=True):
            started = time.perf_counter()
            work()
            times.append(time.perf_counter() - started)
    return [choose(times) for choose in (statistics.median, min) for times in seconds]


def peak_resident() -> int:
    """The most bytes of memory this process ever held."""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if "VmHWM" in line)


def probe(path: str) -> None:
    """In a process of its own: print what reading `path` added to the peak, and the arrays.

    A table of a few rows is read before: what is imported and started once is no matter of size.
    """
    with tempfile.TemporaryDirectory(prefix="etips-bench-") as folder:
        pq.write_table(make_table(10 * STEPS_PER_STAY), few := Path(folder) / "few.parquet")
        read_table(few, **ROLES)
    before = peak_resident()
    data = read_table(path, **ROLES)
    print(json.dumps({"peak": peak_resident() - before, "arrays": array_bytes(data)}))


def peak_memory(path: Path) -> tuple[int, int]:
    """Peak resident bytes that reading adds in a fresh process, and the size of its arrays."""
    command = [sys.executable, __file__, "--probe", str(path)]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    figures = json.loads(found.stdout)
    return figures["peak"], figures["arrays"]


def measure(folder: Path, n_steps: int, n_csv: int, repeats: int) -> list[tuple[str, float, float]]:
    """Each figure as (what, found, goal); a goal of infinity is only reported."""
    rows: list[tuple[str, float, float]] = []
    table = make_table(n_steps)
    ordered, shuffled = folder / "ordered.parquet", folder / "shuffled.parquet"
    pq.write_table(table, ordered, row_group_size=GROUP)
    order = pa.array(np.random.default_rng(1).permutation(n_steps))
    pq.write_table(table.take(order), shuffled, row_group_size=GROUP)
    csv = folder / "ordered.csv"
    pa_csv.write_csv(table.slice(0, n_csv), csv)
    del table, order

    for name, path, goal in (("in order", ordered, 3.0), ("shuffled", shuffled, np.inf)):
        read_table(path, **ROLES)  # once beforehand: the file comes from the page cache for both
        ours, alone, best, best_alone = alternate(
            lambda path=path: read_table(path, **ROLES),
            lambda path=path: pq.read_table(path),
            repeats,
        )
        rows.append((f"{name}: seconds, etips", ours, np.inf))
        rows.append((f"{name}: seconds, pyarrow alone", alone, np.inf))
        rows.append((f"{name}: time / pyarrow alone", ours / alone, goal))
        rows.append((f"{name}: time / pyarrow alone, best of each", best / best_alone, np.inf))
        peak, arrays = peak_memory(path)
        rows.append((f"{name}: peak memory, MB", peak / 1e6, np.inf))
        rows.append((f"{name}: arrays, MB", arrays / 1e6, np.inf))
        least = 2.0 if path == ordered else np.inf
        rows.append((f"{name}: peak memory / arrays", peak / arrays, least))

    ours, alone, *_ = alternate(
        lambda: read_table(csv, **ROLES), lambda: pa_csv.read_csv(csv), repeats
    )
    megabytes = csv.stat().st_size / 1e6
    rows.append((f"CSV of {n_csv:,} steps: MB/s, etips", megabytes / ours, np.inf))
    rows.append((f"CSV of {n_csv:,} steps: MB/s, pyarrow alone", megabytes / alone, np.inf))
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=2_000_000)
    parser.add_argument("--csv-steps", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--probe", metavar="FILE", help="only measure the memory of reading FILE")
    given = parser.parse_args()
    if given.probe:
        probe(given.probe)
        return 0
    with tempfile.TemporaryDirectory(prefix="etips-bench-") as folder:
        rows = measure(Path(folder), given.steps, given.csv_steps, given.repeats)
    title = f"{given.steps:,} steps x {N_FEATURES} float32 features, median of {given.repeats}"
    shown = Table(title=title)
    for heading in ("figure", "goal", "found", ""):
        shown.add_column(heading, justify="left" if heading == "figure" else "right")
    failed = 0
    for name, found, goal in rows:
        verdict = "" if np.isinf(goal) else "pass" if found <= goal else "FAIL"
        failed += verdict == "FAIL"
        wanted = "" if np.isinf(goal) else f"<= {goal:g}"
        shown.add_row(name, wanted, f"{found:,.2f}", verdict)
    Console().print(shown)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
