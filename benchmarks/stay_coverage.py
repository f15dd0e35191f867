"""Do the intervals of whole-stay risk hold the exact mortality of ICU-Sepsis?

    python -m benchmarks.stay_coverage --logs 50 --stays 20000

Every log is drawn anew. Three policies decide throughout: the clinicians, the best supported action
of one step, and one learned by etIPS from a log of its own. The exact mortality of the first two is
solved for; that of the third is counted in 100,000 stays under it. With `--keep FOLDER` the learned
policy and the figures of every log are kept there, and a later run goes on from them.
"""

import argparse
import json
import multiprocessing
import time
from pathlib import Path

import numpy as np

from etips.worlds import icu_sepsis

SUPPORT = 0.05
LONGEST = 120  # steps; hardly anybody is there longer
LEARNED_FROM, JUDGED_BY = 900_000, 1_000  # first seeds


class Table:
    """A policy that looks at the present state alone."""

    def __init__(self, table):
        self.table = table

    def predict_proba(self, data):
        return self.table[np.asarray(data.sequence.code)[data.seen_rows]]


def greedy():
    """The action of least expected loss among those that clinicians take once in twenty times."""
    usual, loss = icu_sepsis.clinicians(), icu_sepsis.expected_loss()
    allowed = usual >= SUPPORT
    allowed[~allowed.any(axis=1)] = True
    return np.eye(usual.shape[1])[np.where(allowed, loss, np.inf).argmin(axis=1)]


def learn(n_stays, folder):
    """A policy of etIPS, its mortality and the standard error of that; kept in a folder."""
    from etips.learn import EtIPS
    from etips.policies.policy_files import load_policy, save_policy

    if not (folder / "truth.json").exists():
        data = icu_sepsis.simulate(n_stays, seed=LEARNED_FROM, lag=0, max_steps=LONGEST)
        policy = EtIPS(seed=0).fit(data).fitted_policy()

        def deployed(asked):
            said = policy.deployed(asked)
            return np.where(said.abstained[:, None], 0.0, said.probabilities)

        found = icu_sepsis.deploy_policy(deployed, n_stays=100_000, seed=7, max_steps=LONGEST)
        risk = found.stay_risk("last")
        save_policy(policy, folder / "policy", overwrite=True)
        (folder / "truth.json").write_text(json.dumps([risk.risk, risk.std_error]))
    return load_policy(folder / "policy"), json.loads((folder / "truth.json").read_text())


def judge(job):
    """What one log says of the policies."""
    from etips.results.evaluate import evaluate

    policies, n_stays, seed, fitted = job
    data = icu_sepsis.simulate(n_stays, seed=seed, lag=0, max_steps=LONGEST, loss="mortality")
    if fitted:
        from dataclasses import replace

        data = replace(data, propensity=None)
    began = time.perf_counter()
    results = evaluate(policies, data, horizon="stay", outcome="last")
    took = time.perf_counter() - began
    return seed, {
        method.name: {
            "risk": method.whole_stay.estimates[0].risk,
            "low": method.whole_stay.estimates[0].low,
            "high": method.whole_stay.estimates[0].high,
            "others": {e.estimator: (e.risk, e.low, e.high) for e in method.whole_stay.estimates},
            "gain": method.whole_stay.gain.difference,
            "better": method.whole_stay.gain.better,
            "verdict": method.whole_stay.verdict,
            "effective": method.whole_stay.effective_stays,
            "seconds": took,
        }
        for method in results.methods
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=int, default=50)
    parser.add_argument("--stays", type=int, default=20_000)
    parser.add_argument("--workers", type=int, default=1, help="processes side by side")
    parser.add_argument("--fitted", action="store_true", help="hide the propensities of the log")
    parser.add_argument("--keep", type=Path, default=Path("stay-coverage"), help="folder")
    options = parser.parse_args()
    options.keep.mkdir(parents=True, exist_ok=True)
    usual, best = icu_sepsis.clinicians(), greedy()
    learned, (risk, error) = learn(options.stays, options.keep)
    exact = {
        "clinicians": icu_sepsis.stay_risk(usual, outcome="last"),
        "greedy": icu_sepsis.stay_risk(best, outcome="last"),
        "EtIPS": risk,
    }
    print(f"exact: {exact}; EtIPS +- {error:.4f}", flush=True)
    policies = {"clinicians": Table(usual), "greedy": Table(best), "EtIPS": learned}
    file = options.keep / "found.jsonl"
    found = dict(map(json.loads, file.read_text().splitlines())) if file.exists() else {}
    seeds = [JUDGED_BY + i for i in range(options.logs) if JUDGED_BY + i not in found]
    jobs = [(policies, options.stays, seed, options.fitted) for seed in seeds]
    with multiprocessing.get_context("spawn").Pool(options.workers) as pool:
        for seed, own in pool.imap_unordered(judge, jobs):
            found[seed] = own
            with file.open("a") as lines:
                print(json.dumps([seed, own]), file=lines)
            print(_summary(exact, list(found.values())), flush=True)


def _summary(exact, found):
    lines = [f"{len(found)} logs"]
    for name, truth in exact.items():
        own = [one[name] for one in found]
        covers = np.mean([o["low"] <= truth <= o["high"] for o in own])
        error = np.mean([o["risk"] for o in own]) - truth
        width = np.mean([o["high"] - o["low"] for o in own])
        reliable = np.mean([o["verdict"] == "reliable" for o in own])
        took = np.mean([o["seconds"] for o in own])
        lines.append(
            f"  {name}: exact {truth:.4f}, covers {covers:.2f}, error {error:+.4f}, width "
            f"{width:.4f}, reliable {reliable:.2f}, {took:.0f} s"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
