"""Randomised logs: do fitted propensities learn noise, and does a policy abstain everywhere?

    python -m benchmarks.randomised --stays 2000 16000 --actions 4 25 80

Actions are drawn without a look at the patient, evenly or some more often than others, so that
nothing beats plain frequencies. Printed is by how much the log-loss of fitted propensities is worse
than that of the frequencies of the same log, in nats and in standard errors of that difference by
stay; and, unless `--propensities-only`, at how many decisions of fresh
stays a policy learned by etIPS abstains.
"""

import argparse
import time

import numpy as np

from etips.data.schema import Schema
from etips.data.trajectories import Trajectories
from etips.learn import EtIPS
from etips.learn.fitting.prepare import choose_device, prepare
from etips.learn.fitting.stages import ENCODER, Training
from etips.learn.fitting.trainer import Trainer
from etips.learn.nuisance.propensity import fit_propensity

STEPS, FEATURES = 3, 6


def log(n_stays, n_actions, *, even, seed):
    """Three decisions a stay; some actions help some patients, the draw knows nothing of it."""
    rng = np.random.default_rng(seed)
    n = n_stays * STEPS
    features = rng.normal(size=(n, FEATURES)).astype(np.float32)
    share = np.ones(n_actions) if even else np.linspace(1, 4, n_actions)
    action = rng.choice(n_actions, n, p=share / share.sum())
    helps = features[:, 0] * np.where(action % 2, 1, -1)
    loss = rng.random(n) < 1 / (1 + np.exp(0.6 + helps))
    return Trajectories(
        sequence=features,
        offsets=np.arange(n_stays + 1) * STEPS,
        schema=Schema(sequence=[f"x{i}" for i in range(FEATURES)], n_actions=n_actions, lag=0),
        action=action,
        loss=loss.astype(float),
    )


def excess(data):
    """Log-loss of fitted propensities less that of frequencies, and its standard error."""
    training = Training().with_seed(0)
    prepared = prepare(data, n_folds=training.n_folds, seed=0, device=choose_device("cpu"))
    fitted = fit_propensity(prepared, ENCODER, training.propensity, Trainer(), seed=0)
    stay, action = data.decisions().stay, data.logged_action
    counts = np.bincount(action, minlength=data.n_actions)
    plain = np.log(counts / counts.sum())[action]
    own = fitted.log_probabilities[np.arange(data.n_decisions), action]
    by_stay = np.bincount(stay, plain - own) / STEPS
    return by_stay.mean(), by_stay.std() / np.sqrt(by_stay.size)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stays", type=int, nargs="+", default=[2_000, 16_000])
    parser.add_argument("--actions", type=int, nargs="+", default=[4, 25, 80])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--propensities-only", action="store_true")
    options = parser.parse_args()
    print("| stays | actions | drawn | excess log-loss | in standard errors | abstains | seconds |")
    print("|---|---|---|---|---|---|---|", flush=True)
    cases = [(n, k) for n in options.stays for k in options.actions]
    for n_stays, n_actions in cases:
        for seed in range(options.seeds):
            even = seed % 2 == 0
            began = time.process_time()
            data = log(n_stays, n_actions, even=even, seed=seed)
            more, error = excess(data)
            abstains = "-"
            if not options.propensities_only:
                fresh = log(1_000, n_actions, even=even, seed=10_000 + seed)
                abstains = f"{EtIPS(seed=seed).fit(data).abstains(fresh).mean():.1%}"
            print(
                f"| {n_stays:,} | {n_actions} | {'evenly' if even else 'unevenly'} | {more:+.5f} | "
                f"{more / max(error, 1e-12):+.1f} | {abstains} | "
                f"{time.process_time() - began:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
