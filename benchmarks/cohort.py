"""Time and peak memory of the cohort builder on 1 to 50 copies of an open demo.

    python benchmarks/cohort.py                    the demo as it ships, then 1, 10, 50 copies
    python benchmarks/cohort.py --repeat 0 --copies 460    MIMIC-III's size: 330 million chart rows
    python benchmarks/cohort.py --source mimic4 --repeat 0 --copies 660    MIMIC-IV's: 440 million

Copies are Parquet files in a temporary folder, removed afterwards. Each run is `etips cohort` in a
process of its own, so that its peak memory is its own; the time includes starting Python, importing
and writing the cohort folder. The reference of 50 seconds is what the original scripts took on the
demo of MIMIC-III (SQL and interpreter).
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from etips.cohorts.mimic import mimic3, mimic4
from etips.worlds.raw_tables import MIMIC3_SHAPE, MIMIC4_SHAPE

ORIGINAL_SECONDS = 50.0
SOURCES = {
    "mimic3": (MIMIC3_SHAPE, mimic3, mimic3.Mimic3Extraction),
    "mimic4": (MIMIC4_SHAPE, mimic4, mimic4.Mimic4Extraction),
}


def demo_folder(source: str) -> Path:
    """Where the demo is: ETIPS_MIMIC3_DEMO or ETIPS_MIMIC4_DEMO, or beside the checkout."""
    beside = Path(__file__).resolve().parents[1] / f"../shared/data/{source}-demo"
    return Path(os.environ.get(f"ETIPS_{source.upper()}_DEMO", beside))


def show_switches(source: str) -> None:
    """Stays, rows, samples and mean loss with each switch of the clean profile alone."""

    from etips.cohorts.build import build_cohort
    from etips.cohorts.databases import open_source

    _, switches, extraction = SOURCES[source]
    folder, PAPER, CLEAN = demo_folder(source), switches.PAPER, switches.CLEAN  # noqa: N806

    def corrected(name):
        return getattr(CLEAN.rules if hasattr(CLEAN.rules, name) else CLEAN.reading, name)

    paper, clean = PAPER.settings(), CLEAN.settings()
    changed = [
        name
        for name in paper
        if name not in ("name", "window_2", "n_steps") and paper[name] != clean[name]
    ]
    runs = {"paper": PAPER}
    for name in changed:
        names = [name]
        if name in ("window_1", "anchor_at_window"):
            names += ["window_1", "window_2", "n_steps"]
        runs[name] = PAPER.changed(**{name: corrected(name) for name in names})
    runs["clean"] = CLEAN
    print("| switch | onsets | stays | rows | samples A | mean loss |\n|" + " --- |" * 6)
    for name, profile in runs.items():
        opened = open_source(folder)
        cohort = build_cohort(extraction(opened, profile))
        opened.close()
        f = cohort.funnel
        print(
            f"| `{name}` | {cohort.onsets.height} | {f.stages[-1].n_stays} | {f.n_rows} "
            f"| {f.n_samples['A']} | {f.mean_loss:.3f} |",
            flush=True,
        )


def measure(folder: Path, profile: str, work: Path) -> dict:
    """Run `etips cohort` in a process of its own: wall and CPU seconds, peak memory."""
    out = work / "cohort"
    command = [Path(sys.executable).with_name("etips"), "cohort", folder, "--out", out, "--json"]
    began = time.perf_counter()
    with subprocess.Popen(
        [str(word) for word in (*command, "--profile", profile)], stdout=subprocess.DEVNULL
    ) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.perf_counter() - began
    if process.returncode:
        raise SystemExit(f"etips cohort ended with {process.returncode}")
    funnel = json.loads((out / "funnel.json").read_bytes())
    shutil.rmtree(out)
    return {
        "seconds": seconds,
        "cpu": usage.ru_utime + usage.ru_stime,
        "peak_mib": usage.ru_maxrss / 1024,
        "stays": funnel["stages"][-1]["n_stays"],
        "rows": funnel["n_rows"],
    }


def show(name: str, found: dict, disk: float) -> None:
    """One line of the table."""
    print(
        f"| {name} | {disk:,.0f} | {found['stays']:,} | {found['rows']:,} | {found['seconds']:.1f} "
        f"| {found['cpu']:.1f} | {found['peak_mib']:,.0f} |",
        flush=True,
    )


def size_mib(folder: Path) -> float:
    """Size of the files in a folder."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 2**20


def main() -> None:
    """Run what the arguments ask for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--copies", type=int, nargs="*", default=[1, 10, 50])
    parser.add_argument("--source", choices=SOURCES, default="mimic3")
    parser.add_argument("--profile", choices=["paper", "clean"], help="the database's own choice")
    parser.add_argument("--switches", action="store_true", help="effect of each switch, demo")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--work", type=Path, help="folder for the copies")
    options = parser.parse_args()
    if options.switches:
        show_switches(options.source)
        return
    print("| source | MiB on disk | stays kept | rows | seconds | CPU seconds | peak MiB |")
    print("|" + " --- |" * 7)
    demo = demo_folder(options.source)
    profile = options.profile or next(iter(SOURCES[options.source][1].PROFILES))
    if options.work:
        options.work.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="etips-cohort-", dir=options.work) as work:
        runs = [measure(demo, profile, Path(work)) for _ in range(options.repeat)]
        if runs:
            middle = sorted(runs, key=lambda run: run["seconds"])[len(runs) // 2]
            show(f"demo, CSV.gz, median of {len(runs)}", middle, size_mib(demo))
        for copies in options.copies:
            measure_copies(options.source, copies, profile, Path(work))
    if runs and options.source == "mimic3":
        print(f"\nspeed-up on the demo: {ORIGINAL_SECONDS / middle['seconds']:.0f} times")


def measure_copies(source: str, copies: int, profile: str, work: Path) -> None:
    """Make copies of the demo, build from them, remove them."""
    folder = work / "tables"
    SOURCES[source][0].write_copies(folder, source=demo_folder(source), copies=copies)
    try:
        show(f"{copies} copies, Parquet", measure(folder, profile, work), size_mib(folder))
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
