"""What does caution cost? True risks of policies that are chosen with it and without.

    python -m benchmarks.caution --seeds 5

etIPS learns from small logs of ICU-Sepsis (lag 0) and of the clinic, whose truth is known. Two
habits cost stays or gain: an inner part decides when networks stop (`INNER_PART`), so that the fold
that judges them has no say in it; and a candidate must beat the clinicians by more than luck
(`luckiest`). Each is left out in turn: networks then stop by the fold that judges them, and the
lowest held-out risk plus half a standard error wins, whatever it is compared with. The null clinic,
where every policy has the same risk, shows what caution buys: how often something is chosen there.
"""

import argparse
import time
from contextlib import contextmanager
from unittest.mock import patch

import numpy as np

from etips.learn.fitting import prepare
from etips.learn.learners import selection
from etips.learn.learners.etips import EtIPS
from etips.worlds import icu_sepsis
from etips.worlds.clinic import Clinic

LEARNED_FROM, JUDGED_ON = 100, 5_000  # first seeds


def sepsis(n_stays, seed):
    return icu_sepsis.simulate(n_stays, seed=seed, lag=0)


def clinic(n_stays, seed):
    return Clinic().log(n_stays, seed=seed)


def null_clinic(n_stays, seed):
    return Clinic(effect=0.0).log(n_stays, seed=seed)


WORLDS = {"ICU-Sepsis": sepsis, "clinic": clinic, "null clinic": null_clinic}


def _judging_fold(_units, fold, _seed):
    """Each network stops by the fold that judges it, as was done once."""
    return fold == np.arange(int(fold.max()) + 1)[:, None]


@contextmanager
def without_inner_part(really):
    if not really:
        yield
        return
    with patch.object(prepare, "_inner_parts", _judging_fold):
        yield


def policies(data, seed, *, inner):
    """What is chosen with caution and without."""
    with without_inner_part(not inner):
        cautious = EtIPS(seed=seed).fit(data).fitted_policy()
        with patch.object(selection, "luckiest", lambda *_: 0.0):
            bold = EtIPS(seed=seed).fit(data).fitted_policy()
    return {"cautious": cautious, "bold": bold}


def gain(policy, data):
    """True risk of a policy in use, less that of the clinicians."""
    said, usual = policy.deployed(data), data.true_logging()
    table = np.where(said.abstained[:, None], usual, said.probabilities)
    return data.true_risk(table) - data.true_risk(usual)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--stays", type=int, default=2_000)
    parser.add_argument("--worlds", nargs="+", choices=WORLDS, default=list(WORLDS))
    options = parser.parse_args()
    for name in options.worlds:
        simulate, found, began = WORLDS[name], {}, time.process_time()
        for seed in range(options.seeds):
            data = simulate(options.stays, LEARNED_FROM + seed)
            fresh = simulate(3_000, JUDGED_ON + seed)
            for inner in (True, False):
                for habit, own in policies(data, seed, inner=inner).items():
                    figures = gain(own, fresh), own.kind == "imitation"
                    found.setdefault((inner, habit), []).append(figures)
        spent = time.process_time() - began
        print(f"{name}, {options.stays:,} stays, {options.seeds} seeds, {spent:.0f} s")
        for (inner, habit), own in found.items():
            gains = np.array([g for g, _ in own])
            stop = "an inner part" if inner else "the judging fold"
            print(
                f"  stops by {stop}, {habit}: true gain {gains.mean():+.4f} "
                f"(sd {gains.std():.4f}; {', '.join(f'{g:+.3f}' for g in gains)}), "
                f"clinicians kept {sum(kept for _, kept in own)}",
                flush=True,
            )


if __name__ == "__main__":
    main()
