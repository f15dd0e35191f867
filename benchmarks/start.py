"""How long a command takes to start, against a bare Python and against importing torch.

Commands are called in turn, so that other work on the machine slows all of them alike.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REPEATS = 7
ROWS = 1000


def bad_table(folder: Path) -> Path:
    """A table whose treatment is there for every row and whose loss is infinite in one."""
    lines = ["stay,step,drug,died,lactate"]
    lines += [
        f"{n // 4},{n % 4},{n % 2},{'inf' if n == 501 else n % 2},{n % 9}" for n in range(ROWS)
    ]
    place = folder / "bad.csv"
    place.write_text("\n".join(lines))
    return place


def seconds(command: list[str], expected: int) -> tuple[float, float]:
    """Wall and processor seconds of a command."""
    began, before = time.perf_counter(), _children()
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode == expected, done.stderr.decode()
    return time.perf_counter() - began, _children() - before


def _children() -> float:
    import resource

    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        bad = str(bad_table(Path(name)))
        roles = ["--stay", "stay", "--step", "step", "--action", "drug", "--loss", "died"]
        etips = [sys.executable, "-m", "etips"]
        commands = {
            "python -c pass": ([sys.executable, "-c", "pass"], 0),
            "import torch": ([sys.executable, "-c", "import torch"], 0),
            "etips --help": ([*etips, "--help"], 0),
            "etips fit --help": ([*etips, "fit", "--help"], 0),
            "etips fit, a bad table": ([*etips, "fit", bad, *roles, "--out", f"{name}/run"], 2),
            "etips check, a bad table": (
                [*etips, "check", bad, *roles, "--out", f"{name}/t.toml", "--overwrite"],
                2,
            ),
        }
        taken: dict[str, list[tuple[float, float]]] = {what: [] for what in commands}
        for _ in range(REPEATS):
            for what, (command, code) in commands.items():
                taken[what].append(seconds(command, code))
    torch = statistics.median(cpu for _, cpu in taken["import torch"])
    print(f"{'':26}{'wall s':>8}{'CPU s':>8}{'/ import torch':>16}   median of {REPEATS}")
    for what, times in taken.items():
        wall, cpu = (statistics.median(kind) for kind in zip(*times, strict=True))
        print(f"{what:26}{wall:8.2f}{cpu:8.2f}{cpu / torch:16.2f}")


if __name__ == "__main__":
    main()
