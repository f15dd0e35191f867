"""An older checkout timed beside this one: both run their own benchmark, in turns."""

import os
import re
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).parents[1]
FIGURES = {
    "training, on the clock": r"^on the clock +[\d.]+ s +([\d.]+) s",
    "training, of the processor": r"^of the processor +[\d.]+ s +([\d.]+) s",
    "outputs": r"^outputs at [\d,]+ decisions +([\d.]+) s",
}
"""Seconds in what `benchmarks.training` prints, by name; not all are there on a GPU."""


def compare_checkouts(other: Path, arguments: Sequence[str], *, turns: int) -> None:
    """Print the seconds of both, and how fast this checkout is in parts of the other one.

    Args:
        other: The root of the older checkout.
        arguments: For both benchmarks.
        turns: How often each runs; medians count.
    """
    seconds: dict[Path, list[dict[str, float]]] = {HERE: [], other.resolve(): []}
    for _ in range(turns):
        for root, found in seconds.items():
            found.append(_run(root, arguments))
    mine, theirs = seconds.values()
    print(f"{'':28} {'this':>10} {'other':>10}   speed, this over other")
    for name in mine[0]:
        new, old = (statistics.median(turn[name] for turn in own) for own in (mine, theirs))
        each = [b[name] / a[name] for a, b in zip(mine, theirs, strict=True)]
        spread = f"turns {min(each):.3f} to {max(each):.3f}"
        print(f"{name:28} {new:8.5f} s {old:8.5f} s   {old / new:.3f} ({spread})")


def _run(root: Path, arguments: Sequence[str]) -> dict[str, float]:
    """The figures of one run in one checkout."""
    command = [sys.executable, "-m", "benchmarks.training", *arguments]
    own = {**os.environ, "PYTHONPATH": str(root)}
    done = subprocess.run(command, cwd=root, env=own, check=True, stdout=subprocess.PIPE, text=True)
    matches = {name: re.search(line, done.stdout, re.M) for name, line in FIGURES.items()}
    return {name: float(match[1]) for name, match in matches.items() if match}
