"""Make a golden record: what the commands that matter put out, as one flat list of figures each.

    python tests/golden/record.py OUT [--code CHECKOUT] [--only NAME ...]

runs `etips demo`, `reproduce table1 --quick`, `reproduce table2 --quick`, a fit with its evaluation
and recommendations, and, where the open MIMIC-III demo is at hand (ETIPS_MIMIC3_DEMO, or beside the
project), its cohort in both profiles. It takes five minutes on one core. Of patients nothing is
kept but digests. `compare.py` holds two records against each other.
"""

import argparse
import hashlib
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parents[2]
BESIDE = ROOT.parent / "shared" / "data" / "mimic3-demo"
DEMO = Path(os.environ.get("ETIPS_MIMIC3_DEMO", BESIDE))
FIT = ("--seed", "3")
ROWS = 40
"""Recommendations that are kept: more of them would tell nothing new."""

PASSING = {"seconds", "versions", "fingerprint", "seconds_left"}
"""What may differ between two runs of the same code, or between two versions of a library."""


def main() -> None:
    """Record what was asked for."""
    parser = argparse.ArgumentParser(description="Make a golden record.")
    parser.add_argument("out", type=Path)
    parser.add_argument("--code", type=Path, default=ROOT, help="the checkout to run")
    parser.add_argument("--only", nargs="*", choices=list(RECORDS), default=list(RECORDS))
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    for name in chosen.only:
        with tempfile.TemporaryDirectory() as folder:
            figures = RECORDS[name](chosen.code.resolve(), Path(folder))
        if figures is None:
            print(f"{name}: left out, {DEMO} is not there")
            continue
        write(chosen.out / f"{name}.json", figures)
        print(f"{name}: {len(figures)} figures")


def write(path: Path, figures: dict[str, float | str]) -> None:
    """One figure a line, so that a change can be read as a difference of two files."""
    document = {"machine": machine(), "figures": figures}
    path.write_text(json.dumps(document, indent=0, sort_keys=True) + "\n")


def machine() -> str:
    """What rounding depends on: another processor or torch gives other last digits."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    model = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    processor = model[0] if model else platform.processor()
    return f"{processor}, torch {version('torch')}, numpy {version('numpy')}"


def demo(code: Path, folder: Path) -> dict[str, float | str]:
    """The whole job on the embedded world."""
    etips(code, "demo", "--out", str(folder / "demo"))
    return figures_of(read(folder / "demo" / "results.json"))


def table1(code: Path, folder: Path) -> dict[str, float | str]:
    """Both digit tasks."""
    etips(code, "reproduce", "table1", "--quick", "--out", str(folder / "table1"))
    return {
        f"{path.parent.name}.{place}": value
        for path in sorted((folder / "table1").glob("*/results.json"))
        for place, value in figures_of(read(path)).items()
    }


def table2(code: Path, folder: Path) -> dict[str, float | str]:
    """The clinical study."""
    etips(code, "reproduce", "table2", "--quick", "--out", str(folder / "table2"))
    return figures_of(read(folder / "table2" / "results.json"))


def run(code: Path, folder: Path) -> dict[str, float | str]:
    """A fit with everything left as it is, what it recommends, and what it is worth."""
    world, held, fitted = (str(folder / name) for name in ("world", "held", "run"))
    etips(code, "simulate", "icu-sepsis", "--stays", "400", "--out", world)
    etips(code, "simulate", "icu-sepsis", "--stays", "400", "--seed", "1", "--out", held)
    etips(code, "fit", world, "--out", fitted, *FIT)
    said = json.loads(etips(code, "evaluate", fitted, held, "--json"))
    etips(code, "recommend", fitted, world, "--out", str(folder / "said.parquet"))
    table = columns_of(folder / "said.parquet")
    said["recommended"] = {name: values[:ROWS] for name, values in table.items()}
    return figures_of(said)


def cohort(code: Path, folder: Path) -> dict[str, float | str] | None:
    """Every cell of the demo cohort in both profiles, as digests of its columns."""
    if not DEMO.is_dir():
        return None
    figures: dict[str, float | str] = {}
    for profile in ("paper", "clean"):
        out = folder / profile
        etips(code, "cohort", str(DEMO), "--profile", profile, "--out", str(out))
        for name in ("table", "onset", "steps", "stays"):
            digests = digests_of(out / f"{name}.parquet")
            figures |= {f"{profile}.{name}.{column}": value for column, value in digests.items()}
        for name in ("funnel", "doses"):
            content = json.dumps(read(out / f"{name}.json"), sort_keys=True)
            figures[f"{profile}.{name}"] = hashlib.sha256(content.encode()).hexdigest()
    return figures


RECORDS = {"demo": demo, "table1": table1, "table2": table2, "run": run, "cohort": cohort}


def etips(code: Path, *words: str) -> str:
    """Run a command of a checkout on one thread; return what it prints."""
    environment = {**os.environ, "PYTHONPATH": str(code), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "etips", *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=code)
    if done.returncode:
        raise SystemExit(f"etips {words[0]}: exit {done.returncode}\n{done.stderr}")
    return done.stdout


def read(path: Path) -> object:
    """A JSON document."""
    return json.loads(path.read_text())


def figures_of(document: object) -> dict[str, float | str]:
    """Every number of a document by its place, and every text that holds a digit."""
    return {".".join(map(str, place)): value for place, value in _leaves(document, ())}


Place = tuple[object, ...]


def _leaves(value: object, place: Place) -> Iterator[tuple[Place, float | str]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            if name not in PASSING:
                yield from _leaves(inner, (*place, name))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            own = inner.get("name", number) if isinstance(inner, dict) else number
            yield from _leaves(inner, (*place, own))
    elif (isinstance(value, int | float) and not isinstance(value, bool)) or (
        isinstance(value, str) and any(sign.isdigit() for sign in value)
    ):
        yield place, value


def columns_of(path: Path) -> dict[str, list[object]]:
    """A Parquet table as lists."""
    import polars as pl

    return pl.read_parquet(path).to_dict(as_series=False)


def digests_of(path: Path) -> dict[str, str]:
    """SHA-256 of each column, numbers rounded to nine digits after the point."""
    return {
        name: hashlib.sha256(json.dumps([_round(v) for v in values]).encode()).hexdigest()
        for name, values in columns_of(path).items()
    }


def _round(value: object) -> object:
    if isinstance(value, float):
        return round(value, 9) + 0.0
    return value if value is None or isinstance(value, int | str) else str(value)


if __name__ == "__main__":
    main()
