"""Do the intervals cover, and is the verdict honest? The public record, made anew by one command.

    python -m benchmarks.coverage --out docs/method/coverage.md

runs every row of the record (half an hour on sixteen cores, most of it the default route's
networks) and the wards of `benchmarks.ward_coverage`; `--studies 20` runs less, `--rows WORD` only
the rows whose name holds the word. Each study has a world of its own, so no figure hangs on one.
With `--keep FILE` every study's outcome is written down as it ends, and a later run goes on from
there; `--seconds N` begins no study after that time.
"""

import argparse
import json
import multiprocessing
import os
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from benchmarks import ward_coverage
from benchmarks.record_routes import Outcome, study

FIRST_STUDY = 50_000
NUMPY_STUDIES, NETWORK_STUDIES = 400, 100
NETWORKS = ("default", "learned")


@dataclass(frozen=True)
class Row:
    """Studies of one kind.

    Args:
        name: What is tried.
        route: In `benchmarks.record_routes`.
        policy: Evaluated, or the learner of it.
        n_stays: Of each log.
        speaks: The models are right and overlap is good, so most should be called reliable.
        settings: Of the worlds.
    """

    name: str
    route: str
    policy: str
    n_stays: int
    speaks: bool = False
    settings: dict = field(default_factory=dict)

    @property
    def key(self):
        return f"{self.name}, {self.policy}, {self.n_stays}"

    @property
    def null(self):
        return not self.settings.get("effect")


def _rows():
    effect = {"effect": 1.0}
    yield from (
        Row("default route, null", "default", "rule", n, n >= 1000) for n in (200, 1000, 5000)
    )
    yield Row("default route, null", "default", "rule", 20_000, True, {"lengths": "one"})
    yield from (
        Row("default route, effects", "default", p, 2000, True, effect) for p in ("tilt", "greedy")
    )
    yield Row("default route, constant policy", "default", "constant", 2000, False, effect)
    yield from (
        Row(f"default route, {form}", "default", "rule", 1500, False, {"form": form})
        for form in ("square", "product", "history")
    )
    yield Row("default route, rare losses", "default", "rule", 4000, False, {"loss": "rare"})
    yield Row("default route, skewed losses", "default", "rule", 1500, False, {"loss": "lognormal"})
    yield Row("default route, 60 actions", "default", "tilt", 3000, False, {"n_actions": 60})
    yield Row(
        "default route, unequal stays", "default", "rule", 1500, False, {"lengths": "unequal"}
    )
    yield Row("default route, heavy weights", "default", "rule", 2000, False, {"sharpness": 1.2})
    yield Row("learned, null", "learned", "EtIPS", 2000)
    yield Row("learned, null", "learned", "DoublyRobust", 2000)
    yield Row("learned, effects", "learned", "DoublyRobust", 3000, True, effect)
    yield from (
        Row("known propensities, null", "known", "rule", n, n >= 1000) for n in (200, 1000, 20_000)
    )
    yield Row("known, good policy", "known", "greedy", 1000, False, {"loss": "near zero", **effect})
    yield Row("known, rare losses", "known", "rule", 8000, False, {"loss": "rare"})
    yield Row("known, skewed losses", "known", "rule", 1500, False, {"loss": "lognormal"})
    yield Row("known, heavy weights", "known", "constant", 2000, False, {"sharpness": 1.5})
    yield Row("known, unequal stays", "known", "rule", 1000, False, {"lengths": "unequal"})
    yield Row("known, 60 actions", "known", "tilt", 3000, False, {"n_actions": 60})
    for form in ("linear", "square", "product", "history"):
        yield Row(f"right logit, {form}", "right", "rule", 2000, True, {"form": form})
        yield Row(f"blind logit, {form}", "wrong", "constant", 2000, False, {"form": form})
    yield Row("frequencies", "frequencies", "constant", 2000)
    yield Row("frequencies, few stays", "frequencies", "constant", 300)
    yield Row("frequencies, 60 actions", "frequencies", "rule", 3000, False, {"n_actions": 60})
    yield Row("both models blind", "both_wrong", "constant", 3000)
    yield Row("both models blind, product", "both_wrong", "rule", 3000, False, {"form": "product"})


ROWS = tuple(_rows())


@dataclass(frozen=True)
class Tally:
    """What the studies of a row said, as shares."""

    covers: float
    reliable: float
    covers_reliable: float
    false_better: float


def tally(row, outcomes):
    """Shares over the studies of a row; false "better" counts where the verdict lets it stand."""
    reliable = np.array([o.reliable for o in outcomes])
    covers = np.array([o.covers for o in outcomes])
    better = np.array([o.better and o.reliable and not o.is_better for o in outcomes])
    return Tally(
        covers=float(covers.mean()),
        reliable=float(reliable.mean()),
        covers_reliable=float(covers[reliable].mean()) if reliable.any() else float("nan"),
        false_better=float(better.mean()) if row.null else float("nan"),
    )


def run(rows, *, studies=None, workers=None, keep=None, seconds=np.inf):
    """Every row's outcomes; each study in a process of its own, so that all cores work.

    Args:
        rows: Of the record.
        studies: Of each row; its own number if left out.
        workers: Processes; one a core if left out.
        keep: File to which every outcome is added; what it holds already is not done again.
        seconds: After them no study is begun.
    """
    until, known = time.time() + seconds, _read_kept(keep)
    wanted = [[FIRST_STUDY + i for i in range(studies or _studies(row))] for row in rows]
    jobs = [(row, s, until) for row, seeds in zip(rows, wanted, strict=True) for s in seeds]
    jobs = [job for job in jobs if (job[0].key, job[1]) not in known]
    jobs.sort(key=lambda job: job[1])  # stopped early, rows have about as many studies each
    with multiprocessing.Pool(workers or os.cpu_count(), initializer=_one_thread) as pool:
        for key, seed, outcome in filter(None, pool.imap_unordered(_study, jobs)):
            known[key, seed] = outcome
            if keep is not None:
                with keep.open("a", encoding="utf-8") as file:
                    print(json.dumps([key, seed, asdict(outcome)]), file=file)
    return [
        [known[row.key, seed] for seed in seeds if (row.key, seed) in known]
        for row, seeds in zip(rows, wanted, strict=True)
    ]


def _study(job):
    row, seed, until = job
    if time.time() > until:
        return None
    return row.key, seed, study(row.settings, row.n_stays, row.policy, row.route, seed)


def _read_kept(keep):
    if keep is None or not keep.exists():
        return {}
    lines = (json.loads(line) for line in keep.read_text(encoding="utf-8").splitlines())
    return {(key, seed): Outcome(**own) for key, seed, own in lines}


def page(rows, outcomes):
    """The record as a page."""
    lines = [INTRO, HEADER]
    for row, own in zip(rows, outcomes, strict=True):
        lines.append(_line(row, tally(row, own), len(own)))
    return "\n".join(lines)


INTRO = """# Coverage: do the intervals hold the truth, and is the verdict honest?

Written by `python -m benchmarks.coverage --out docs/method/coverage.md`; edit the script, not
this page. Every study has a world of its own, drawn anew (`benchmarks/record_worlds.py`); the
thresholds of the verdict were not chosen on these.

## The record

*Default route*: `etips.evaluate` as it comes, propensities and outcomes cross-fitted on the
evaluated stays. *Learned*: a policy fitted by the package on half of the stays, evaluated on the
other half. *Known*: propensities known by design. *Right* and *blind logit*, *frequencies*:
propensities that are calibrated, and that know the confounder or do not. Shares in percent.
Goals: of what is called reliable at least 93 cover (binomial noise of two standard errors allowed
for); false "better" at most 5 in null worlds, noise allowed for; at least 80 reliable in the rows
marked *, where the models can be right and overlap is good. A figure in bold misses its goal.
"""

HEADER = (
    "| what | policy | stays | studies | covers | reliable | covers, of those | false better |\n"
    "|---|---|---|---|---|---|---|---|"
)


def _line(row, own, n):
    told = row.name + (" *" if row.speaks else "")
    n_reliable = max(round(own.reliable * n), 1)
    least = 0.93 - 2 * np.sqrt(0.93 * 0.07 / n_reliable)
    most = 0.05 + 2 * np.sqrt(0.05 * 0.95 / n)
    return ward_coverage.table_row(
        [
            told,
            row.policy,
            f"{row.n_stays:,}",
            n,
            f"{100 * own.covers:.1f}",
            ward_coverage.percent(own.reliable, 0.8 if row.speaks else 0.0, 1.0),
            ward_coverage.percent(own.covers_reliable, least, 1.0),
            ward_coverage.percent(own.false_better, 0.0, most),
        ]
    )


def _studies(row):
    return NETWORK_STUDIES if row.route in NETWORKS else NUMPY_STUDIES


def _one_thread():
    import torch

    torch.set_num_threads(1)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="the page to write; printed if left out")
    parser.add_argument("--studies", type=int, help="of each row; by default 100, or 400 if quick")
    parser.add_argument("--rows", default="", help="only rows whose name holds this")
    parser.add_argument("--share", type=float, default=1.0, help="share of the wards to run")
    parser.add_argument("--workers", type=int, help="processes; all cores if left out")
    parser.add_argument("--keep", type=Path, help="file of outcomes to add to and go on from")
    parser.add_argument("--seconds", type=float, default=np.inf, help="begin no study after them")
    options = parser.parse_args()
    began = time.perf_counter()
    rows = [row for row in ROWS if options.rows in f"{row.name} {row.route}"]
    outcomes = run(
        rows,
        studies=options.studies,
        workers=options.workers,
        keep=options.keep,
        seconds=options.seconds,
    )
    text = page(rows, outcomes)
    if options.share > 0 and not options.rows:
        text += "\n\n" + ward_coverage.sections(options.share)
    print(f"{time.perf_counter() - began:.0f} s")
    if options.out:
        options.out.write_text(text + "\n", encoding="utf-8")
    else:
        print(text)


if __name__ == "__main__":
    main()
