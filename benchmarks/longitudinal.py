"""Is a treatment that helps at once and harms over the stay ever called better?

    python -m benchmarks.longitudinal --logs 50 --stays 2000

Randomised logs of the world `tolerance`, five actions and eight visits each. The policy gives one
treatment to everybody: it gains at one changed decision and loses over the stay. Counted is how
often an evaluation calls it better without a warning, and how often the whole-stay estimate has the
right sign. With `--keep FILE` the figures of every log are kept there, and a later run goes on.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np

from etips.results.evaluate import evaluate
from etips.worlds.tolerance import Tolerance

TREATMENTS = {"strong": -1, "moderate": -2}
JUDGED_BY = 1_000  # first seed


class Always:
    """One action for everybody."""

    def __init__(self, action):
        self.action = action

    def predict_proba(self, data):
        return np.eye(data.n_actions)[np.full(data.n_decisions, self.action)]


def judge(world, treatment, n_stays, seed):
    """What one log says of giving everybody the treatment."""
    data = world.log(n_stays, seed=seed)
    began = time.process_time()
    policy = Always(TREATMENTS[treatment] % world.n_actions)
    (found,) = evaluate({treatment: policy}, data, horizon="stay").methods
    stay = found.whole_stay
    return {
        "better": found.gain.better,
        "better at one decision": found.gain.better_at_one_decision,
        "reversal": stay.reversal,
        "gain": stay.gain.difference,
        "low": stay.gain.low,
        "high": stay.gain.high,
        "verdict": stay.verdict,
        "seconds": time.process_time() - began,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=int, default=50)
    parser.add_argument("--stays", type=int, default=2_000)
    parser.add_argument("--treatment", choices=TREATMENTS, default="strong")
    parser.add_argument("--keep", type=Path, help="file")
    options = parser.parse_args()
    world = Tolerance(overlap=1.0)
    table = world.constant_table(TREATMENTS[options.treatment] % world.n_actions)
    usual = world.logging_table()
    at_once = world.decision_risk(table) - world.decision_risk(usual)
    truth = world.stay_risk(table) - world.stay_risk(usual)
    print(f"true change at one decision {at_once:+.3f}, over the stay {truth:+.3f}", flush=True)
    kept = options.keep.read_text() if options.keep and options.keep.exists() else ""
    found = dict(map(json.loads, kept.splitlines()))
    for seed in range(JUDGED_BY, JUDGED_BY + options.logs):
        if seed not in found:
            found[seed] = judge(world, options.treatment, options.stays, seed)
            if options.keep:
                with options.keep.open("a") as lines:
                    print(json.dumps([seed, found[seed]]), file=lines)
            print(_summary(truth, list(found.values())), flush=True)


def _summary(truth, found):
    gains = np.array([own["gain"] for own in found])
    warned = sum(own["better"] and not own["reversal"] for own in found)
    holds = sum(own["low"] <= truth <= own["high"] for own in found)
    at_once = sum(own["better at one decision"] for own in found)
    seconds = np.mean([own["seconds"] for own in found])
    labels = {label: sum(own["verdict"] == label for own in found) for label in _labels(found)}
    return (
        f"{len(found)} logs: better at one decision {at_once}, better without a warning {warned}, "
        f"right sign {int((gains > 0).sum())}, interval holds {holds}, "
        f"mean {gains.mean():+.2f} (sd {gains.std():.2f}), {labels}, {seconds:.0f} s each"
    )


def _labels(found):
    return sorted({own["verdict"] for own in found})


if __name__ == "__main__":
    main()
