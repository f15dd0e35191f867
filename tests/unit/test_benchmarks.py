"""Benchmarks are run by hand and rarely: what they import must still be there."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAMES = sorted(path.stem for path in (ROOT / "benchmarks").glob("*.py") if path.stem != "__init__")


def test_every_benchmark_can_be_imported():
    assert len(NAMES) > 5
    imports = "; ".join(f"import benchmarks.{name}" for name in NAMES)
    done = subprocess.run(
        [sys.executable, "-c", imports], cwd=ROOT, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
