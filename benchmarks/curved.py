"""True gain of learners over the clinicians where the truth is no straight line.

    python -m benchmarks.curved --sizes 1500 --seeds 0 1 --out results.json
    python -m benchmarks.curved --worlds ring zhou --learners EtIPS DirectMethod --out results.json
    python -m benchmarks.curved --table --out results.json        # the summary of what is there
    OMP_NUM_THREADS=1 python -m benchmarks.curved --jobs 16 --out results.json

Every learner of etips named by `--learners` and three plain baselines (a lasso an arm, a forest an
arm, a forest on doubly robust scores), with econml, LightGBM and d3rlpy where they are installed,
learn from the same logs. The size is the number of stays. A run that was stopped goes on where it
was; what failed is tried again. The worlds are frozen: nothing may be tuned to them. Those named
`later-...` were written after the code they were first run with; `--worlds` has to name them.
"""

import argparse
import json
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed, parallel_config

from benchmarks.curved_baselines import PEERS, PLAIN, missing_peers
from benchmarks.curved_later_worlds import LATER_WORLDS
from benchmarks.curved_worlds import WORLDS as FROZEN_WORLDS
from benchmarks.curved_worlds import Ask, Floats, Log, Stays, World, zhou_tree

WORLDS = {**FROZEN_WORLDS, **LATER_WORLDS}

ZHOU_PUBLISHED = {1000: 0.139, 1500: 0.088, 2000: 0.068, 2500: 0.052}
"""Regret to the best tree of depth two: grf scores, exact tree, mean of 400 runs."""

LEAST_SHARE = 0.1
"""Shares of a gain below this part of the best possible one are noise and left out."""


@dataclass(frozen=True)
class Result:
    """One learner on one log; `gain` is None where it failed, and `error` says how."""

    world: str
    n: int
    seed: int
    contestant: str
    gain: float | None
    best: float
    seconds: float
    error: str = ""

    @property
    def key(self) -> tuple[str, int, int, str]:
        """What it is the result of."""
        return self.world, self.n, self.seed, self.contestant


# A learner of etips on a log


def to_etips(stays: Stays, log: Log) -> object:
    """Stays as etips takes them, with their log, or with one of zeros where they are questions."""
    import etips

    n_decisions = int(stays.decides.sum())
    asked = stays is not log.stays
    action = np.full(stays.decides.shape, -1)
    loss = np.full(stays.decides.shape, np.nan)
    action[stays.decides] = np.zeros(n_decisions, int) if asked else log.action
    loss[stays.decides] = np.zeros(n_decisions) if asked else log.loss
    if stays.features.shape[1] == 1 and log.stays.features.shape[1] == 1:
        return etips.from_arrays(
            stays.features[:, 0], action[:, 0], loss[:, 0], n_actions=log.n_actions
        )
    return etips.from_arrays(
        stays.features, action, loss, lengths=stays.lengths, n_actions=log.n_actions
    )


def learn_by_etips(name: str, log: Log, seed: int) -> Ask:
    """The policy of a learner by its Python name, as it acts once it is followed."""
    import etips

    learner = getattr(etips, name)(seed=seed).fit(to_etips(log.stays, log))

    def ask(stays: Stays) -> Floats:
        data = to_etips(stays, log)
        if not hasattr(learner, "deployed"):
            return np.asarray(learner.predict_proba(data), np.float64)
        # The likeliest action where that is what it takes; clinicians where it abstains.
        acts = learner.deployed(data)
        return np.where(acts.abstained[:, None], np.nan, acts.probabilities)

    return ask


def measure(world: str, n: int, seed: int, contestant: str) -> Result:
    """Teach one contestant from one log and judge it by the truth."""
    own, started = WORLDS[world], time.perf_counter()
    gain, error = None, ""
    try:
        log = own.sample(n, seed)
        known = {**PLAIN, **PEERS}.get(contestant)
        ask = known(log, seed) if known else learn_by_etips(contestant, log, seed)
        gain = own.gain(ask)
        if not np.isfinite(gain):
            gain, error = None, "the gain is not a number"
    except Exception as fault:  # noqa: BLE001  # one learner's fault is a result, not the end
        error = f"{type(fault).__name__}: {str(fault)[:300]}"
    seconds = time.perf_counter() - started
    return Result(world, n, seed, contestant, gain, own.best_gain(), round(seconds, 2), error)


# Results on disk


def read_results(path: Path) -> list[Result]:
    """What is there already."""
    if not path.exists():
        return []
    return [Result(**own) for own in json.loads(path.read_text())]


def write_results(path: Path, results: Iterable[Result]) -> None:
    """All at once, so that a stopped run leaves a whole file."""
    part = path.with_name(path.name + ".part")
    part.write_text("[\n" + ",\n".join(json.dumps(asdict(own)) for own in results) + "\n]\n")
    part.replace(path)


def run(given: argparse.Namespace) -> None:
    """Go through what is asked and not there yet."""
    absent = missing_peers()
    for name in absent:
        print(f"{name}: not installed, left out")
    peers = [name for name in given.peers if name not in absent]
    results = {own.key: own for own in read_results(given.out)}
    done = {key for key, own in results.items() if not own.error}
    tasks = [
        (world, n, seed, contestant)
        for n in given.sizes
        for seed in given.seeds
        for world in given.worlds
        for contestant in (*PLAIN, *peers, *given.learners)
        if (world, n, seed, contestant) not in done
    ]
    with parallel_config(backend="loky", inner_max_num_threads=1):
        work = Parallel(n_jobs=given.jobs, return_as="generator_unordered")
        for own in work(delayed(measure)(*task) for task in tasks):
            results[own.key] = own
            write_results(given.out, results.values())
            said = own.error or f"{own.gain:+.4f} of {own.best:.4f}"
            print(
                f"{own.world} {own.n} {own.seed} {own.contestant}: {said}, {own.seconds:.1f} s",
                flush=True,
            )


# The summary


@dataclass(frozen=True)
class Cell:
    """Gains in one world at one size, by contestant."""

    world: str
    n: int
    best: float
    gains: dict[str, Floats]

    def mean(self, contestant: str) -> float:
        """Mean gain over seeds; NaN where there is none."""
        own = self.gains.get(contestant, np.empty(0))
        return float(own.mean()) if own.size else float("nan")

    def shown(self, contestant: str) -> str:
        """Mean gain with its standard error over seeds."""
        own = self.gains.get(contestant, np.empty(0))
        if not own.size:
            return "-"
        error = f" ± {own.std(ddof=1) / own.size**0.5:.3f}" if own.size > 1 else ""
        return f"{own.mean():.3f}{error}"

    @property
    def baseline(self) -> float:
        """Mean gain of the better plain baseline, the clinicians among them (0)."""
        return float(np.nanmax([0.0, *(self.mean(name) for name in PLAIN)]))

    def share_of_baseline(self, contestant: str) -> float:
        """NaN where the better plain baseline gains next to nothing."""
        least = max(LEAST_SHARE * self.best, 1e-9)
        return self.mean(contestant) / self.baseline if self.baseline > least else float("nan")

    def share_of_best(self, contestant: str) -> float:
        """NaN where nothing can be gained."""
        return self.mean(contestant) / self.best if self.best > 1e-9 else float("nan")


def cells_of(results: list[Result]) -> list[Cell]:
    """Worlds by size, in the order of the list of worlds."""
    cells = []
    for n in sorted({own.n for own in results}):
        for world in WORLDS:
            here = [own for own in results if (own.world, own.n) == (world, n)]
            names = dict.fromkeys(own.contestant for own in here)
            gains = {
                name: np.array(
                    [own.gain for own in here if own.contestant == name and own.gain is not None]
                )
                for name in names
            }
            if here:
                cells.append(Cell(world, n, here[0].best, gains))
    return cells


def percent(share: float) -> str:
    """A share as text."""
    return "-" if np.isnan(share) else f"{share:.2f}"


def print_rows(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
    """A Markdown table."""
    heads = list(heads)
    print("| " + " | ".join(heads) + " |\n|" + " --- |" * len(heads))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print()


def print_table(results: list[Result]) -> None:
    """Gains by world, then what they come to for each learner of etips."""
    for n in sorted({own.n for own in results}):
        cells = [own for own in cells_of(results) if own.n == n]
        names = list(dict.fromkeys(own.contestant for own in results if own.n == n))
        learners = [name for name in names if name not in PLAIN and name not in PEERS]
        names = [name for name in (*PLAIN, *PEERS) if name in names] + learners
        seeds = len({own.seed for own in results if own.n == n})
        print(f"### {n} stays, {seeds} seeds: gain over the clinicians\n")
        print_rows(
            ["world", "best possible", *names, *(f"{name} / baseline" for name in learners)],
            (
                [
                    *(cell.world, f"{cell.best:.3f}", *map(cell.shown, names)),
                    *(percent(cell.share_of_baseline(name)) for name in learners),
                ]
                for cell in cells
            ),
        )
        _print_summary(cells, names)
        _print_zhou([own for own in cells if own.world == "zhou"], names)
        _print_seconds([own for own in results if own.n == n], names)


def _print_summary(cells: list[Cell], names: list[str]) -> None:
    good = [own for own in cells if WORLDS[own.world].good_clinicians]
    others = [own for own in cells if not WORLDS[own.world].good_clinicians]

    def mean(shares: Iterable[float]) -> str:
        known = [own for own in shares if not np.isnan(own)]
        return percent(float(np.mean(known)) if known else float("nan"))

    def worst(name: str, among: list[Cell]) -> str:
        known = [(own.mean(name), own.world) for own in among if not np.isnan(own.mean(name))]
        if not known:
            return "-"
        lowest, where = min(known)
        return f"{-lowest:.3f} ({where})" if lowest < 0 else "none"

    heads = [
        *("contestant", "share of the better baseline", "share of the best possible"),
        *("clinicians good: share of the best", "clinicians good: worst shortfall"),
        "elsewhere: worst shortfall",
    ]
    rows = [
        [
            name,
            mean(own.share_of_baseline(name) for own in others),
            mean(own.share_of_best(name) for own in others),
            mean(own.share_of_best(name) for own in good),
            worst(name, good),
            worst(name, others),
        ]
        for name in names
    ]
    print("Means over worlds; the two first are of worlds whose clinicians are not good.\n")
    print_rows(heads, rows)


def _print_zhou(cells: list[Cell], names: list[str]) -> None:
    world = WORLDS["zhou"]
    assert isinstance(world, World)
    for cell in cells:
        tree = world.gain(zhou_tree)
        rows = [[name, f"{tree - cell.mean(name):.3f}"] for name in names if name in cell.gains]
        if cell.n in ZHOU_PUBLISHED:
            rows.append(["grf scores, exact tree (published)", f"{ZHOU_PUBLISHED[cell.n]:.3f}"])
        print_rows([f"zhou, {cell.n} stays", "regret to the best tree of depth two"], rows)


def _print_seconds(results: list[Result], names: list[str]) -> None:
    rows = []
    for name in names:
        own = [one for one in results if one.contestant == name]
        worlds = sorted({one.world for one in own if one.error})
        median = np.median([one.seconds for one in own])
        rows.append([name, f"{median:.1f}", f"{len(worlds)} {' '.join(worlds)}".strip()])
    print_rows(["contestant", "median seconds", "worlds in which it failed"], rows)


def main() -> None:
    """Read the options; run, or print the summary."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--worlds", nargs="+", choices=WORLDS, default=list(FROZEN_WORLDS))
    parser.add_argument("--sizes", nargs="+", type=int, default=[500, 1500, 5000])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--learners", nargs="*", default=["EtIPS", "DoublyRobust"])
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=list(PEERS))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True, help="results, added to what is there")
    parser.add_argument("--table", action="store_true", help="print the summary and nothing else")
    given = parser.parse_args()
    if not given.table:
        run(given)
    print_table(read_results(given.out))


if __name__ == "__main__":
    main()
