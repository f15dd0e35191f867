"""A hundred small studies on ICU-Sepsis: how often an estimate called reliable misses the truth.

    python benchmarks/studies.py --lag 0 --studies 100

Each study simulates stays of its own, learns policies on half of them and evaluates them on the
other half, as a user would. Printed for each policy and verdict: how many estimates there were, and
how many intervals of the headline estimate do not hold the true risk.
"""

import argparse
import json
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

from etips.data import split
from etips.learn import DoublyRobust, EtIPS, MostFrequent, PredictiveModel, Settings, Training
from etips.models.encoders.gru import GRU
from etips.results.evaluate import evaluate
from etips.results.evaluation_log import Models
from etips.worlds import icu_sepsis

GOAL = 0.07  # of the estimates called reliable


def study(seed: int, *, lag: int, stays: int) -> list[dict[str, object]]:
    """One study: a line a policy."""
    data = replace(icu_sepsis.simulate(stays, seed=10_000 + seed, lag=lag), propensity=None)
    learn, judge = split(data, test=0.5, seed=seed)
    stage = Settings(epochs=8, patience=3, learning_rate=4e-3, dropout=0.1)
    training = Training(n_folds=2, propensity=stage, outcome=stage, policy=stage, device="cpu")
    shape = {"encoder": GRU(24, embed=32), "training": training, "seed": seed}
    policies = {
        "etips": EtIPS(translations=(0.3, 0.6, 0.9), **shape).fit(learn),
        "doubly-robust": DoublyRobust(**shape).fit(learn),
        "predictive": PredictiveModel(**shape).fit(learn),
        "most-frequent": MostFrequent().fit(learn),
    }
    models = Models(encoder=GRU(24, embed=32), training=training, seed=seed)
    results = evaluate(policies, judge, models=models)
    return [
        {
            "seed": seed,
            "policy": method.name,
            "verdict": method.verdict,
            "risk": head.risk,
            "low": head.low,
            "high": head.high,
            "truth": method.truth,
            "missed": not head.low <= (method.truth or 0.0) <= head.high,
            "share": (method.diagnostics.effective_sample_size or 0.0) / results.data.n_decisions,
        }
        for method in results.methods
        for head in method.estimates[:1]
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lag", type=int, default=0)
    parser.add_argument("--studies", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--stays", type=int, default=3000)
    parser.add_argument("--lines", help="also write a JSON line an estimate here")
    options = parser.parse_args()
    started, lines = time.perf_counter(), []
    for seed in range(options.first, options.first + options.studies):
        lines += study(seed, lag=options.lag, stays=options.stays)
        if options.lines:
            Path(options.lines).write_text("".join(json.dumps(line) + "\n" for line in lines))
    count = Counter((line["policy"], line["verdict"]) for line in lines)
    missed = Counter((line["policy"], line["verdict"]) for line in lines if line["missed"])
    for key in sorted(count):
        print(f"{key[0]:14} {key[1]:9} {count[key]:4} estimates, {missed[key]:3} miss the truth")
    reliable = [line["missed"] for line in lines if line["verdict"] == "reliable"]
    share = sum(reliable) / max(len(reliable), 1)
    print(f"lag {options.lag}: {len(reliable)} reliable, {share:.1%} miss (goal: {GOAL:.0%})")
    print(f"{(time.perf_counter() - started) / options.studies:.1f} s a study")


if __name__ == "__main__":
    main()
