"""Seconds from a table of one row a patient to a report: `etips fit`, `evaluate`, `report`.

    python -m benchmarks.tabular
    ETIPS_IST=FOLDER python -m benchmarks.tabular      # IST.csv.gz of the stroke trial

Without the trial a table like it is made: 19,435 patients, six arms drawn at random, text, gaps, a
loss that the arms do not change. Three fifths of the patients are learned from, the others judge.
"""

import csv
import gzip
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

PATIENTS = 19_435
LEARNED = 0.6
COLUMNS = {
    "like the trial": ("--action", "aspirin,heparin", "--loss", "died"),
    "the trial": (
        *("--action", "RXASP,RXHEP", "--loss", "DIED"),
        *("--features", "R*,AGE,SEX,STYPE", "--drop", "RDATE"),
    ),
}


def make_table(n: int = PATIENTS, seed: int = 0) -> tuple[list[str], list[list[str]]]:
    """Header and rows of a trial without any effect."""
    rng = np.random.default_rng(seed)
    age, pressure = rng.normal(72, 11, n).round(), rng.normal(160, 27, n).round()
    delay = rng.integers(1, 48, n)
    conscious = rng.choice(["F", "D", "U"], n, p=[0.77, 0.22, 0.01])
    kind = rng.choice(["PACS", "TACS", "LACS", "POCS", "OTH"], n, p=[0.4, 0.24, 0.24, 0.11, 0.01])
    signs = rng.choice(["Y", "N", "C"], (n, 8), p=[0.5, 0.45, 0.05])
    slope = 0.06 * (age - 72) + 1.2 * (conscious != "F") + 0.9 * (kind == "TACS") - 1.6
    died = rng.random(n) < 1 / (1 + np.exp(-slope))
    aspirin = rng.choice(["Y", "N"], n)
    heparin = rng.choice(["N", "L", "M"], n, p=[0.5, 0.25, 0.25])
    gaps = rng.random(n) < 0.05
    header = ["age", "pressure", "delay", "conscious", "kind", *(f"sign{k}" for k in range(8))]
    columns = [age, np.where(gaps, "", pressure.astype(str)), delay, conscious, kind, *signs.T]
    header += ["aspirin", "heparin", "died"]
    columns += [aspirin, heparin, died.astype(int)]
    return header, [list(map(str, row)) for row in zip(*columns, strict=True)]


def read_trial(folder: str) -> tuple[list[str], list[list[str]]]:
    """The trial as it is published."""
    with gzip.open(Path(folder) / "IST.csv.gz", "rt", encoding="latin-1") as file:
        header, *rows = list(csv.reader(file))
    return header, rows


def write_parts(folder: Path, header: list[str], rows: list[list[str]]) -> tuple[Path, Path]:
    """Who is learned from, and who judges."""
    random.Random(0).shuffle(rows)
    cut = round(LEARNED * len(rows))
    paths = folder / "learn.csv", folder / "judge.csv"
    for path, part in zip(paths, (rows[:cut], rows[cut:]), strict=True):
        with path.open("w", newline="") as file:
            csv.writer(file).writerows([header, *part])
    return paths


def run(*command: str) -> tuple[float, float, str]:
    """Wall seconds, processor seconds, and what a command printed."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "etips", *command], capture_output=True, text=True, check=False
    )
    wall, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"etips {command[0]} ended with {done.returncode}: {done.stderr[-500:]}")
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, used, done.stdout


def commands(name: str, header: list[str], rows: list[list[str]]) -> None:
    """Fit, evaluate and report, each as a process of its own."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        learn, judge = write_parts(folder, header, rows)
        fitted = str(folder / "run")
        steps = {
            "fit": ("fit", str(learn), *COLUMNS[name], "--out", fitted),
            "evaluate": ("evaluate", fitted, str(judge)),
            "report": ("report", fitted),
        }
        wall = used = 0.0
        print(f"{name}, {len(rows):,} patients, {len(header)} columns")
        for step, command in steps.items():
            seconds, processor, said = run(*command)
            wall, used = wall + seconds, used + processor
            print(f"  {step:10s} {seconds:6.1f} s, processor {processor:6.1f} s")
            if step == "evaluate":
                verdict = said
        print(f"  {'together':10s} {wall:6.1f} s, processor {used:6.1f} s\n{verdict}")


def main() -> None:
    """Everything."""
    commands("like the trial", *make_table())
    folder = os.environ.get("ETIPS_IST", "")
    if folder and (Path(folder) / "IST.csv.gz").is_file():
        commands("the trial", *read_trial(folder))


if __name__ == "__main__":
    main()
