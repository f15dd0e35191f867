"""Speed and memory of the evaluation: 1,000,000 decisions, 25 actions.

    python -m benchmarks.evaluate

Prints one table. Times are of the processor, the median of five runs after a warm-up, inputs in
memory and checked as in use. The plain loop is what one would write first: for each replicate draw
the stays, look up how often each decision's stay was drawn, and weigh all decisions again; measured
on 20 replicates and scaled.
"""

import argparse
import statistics
import time
import tracemalloc

import numpy as np

from etips.evaluation import (
    Log,
    Percentile,
    Studentised,
    assess,
    clipped_ips,
    diagnose,
    dm,
    dr,
    dr_shrinkage,
    ips,
    judge,
    sndr,
    snips,
    switch_dr,
    view,
    weigh,
)

N_ACTIONS = 25
PER_STAY = 10.7  # the paper: 224,333 decisions of 20,944 stays
PLAIN_REPLICATES = 20


def make(n_decisions, seed=0):
    """A log of `n_decisions` and a policy's probabilities."""
    generator = np.random.default_rng(seed)
    scores = generator.standard_exponential((n_decisions, N_ACTIONS))
    policy = scores / scores.sum(axis=1, keepdims=True)
    propensities = 0.5 * policy + 0.5 / N_ACTIONS
    steps = propensities.cumsum(axis=1)
    action = (generator.random(n_decisions)[:, None] > steps).sum(axis=1).clip(max=N_ACTIONS - 1)
    n_stays = round(n_decisions / PER_STAY)
    log = Log(
        loss=(generator.random(n_decisions) < 0.3).astype(float),
        action=action,
        propensity=propensities[np.arange(n_decisions), action],
        cluster=np.sort(generator.integers(0, n_stays, n_decisions)),
        n_actions=N_ACTIONS,
        predicted=generator.random((n_decisions, N_ACTIONS)),
    )
    return log, policy


def seconds(call, *, runs=5):
    """Median time of `call` after one warm-up, of the processor: what a quiet machine takes."""
    call()
    times = []
    for _ in range(runs):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return statistics.median(times)


def extra_megabytes(call):
    """Most memory that `call` held at once, beyond what was there before."""
    tracemalloc.start()
    call()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak / 2**20


def plain_bootstrap(loss, weight, code, n_clusters, *, replicates, seed=0):
    """SNIPS in each replicate, the way one would first write it."""
    generator = np.random.default_rng(seed)
    values = []
    for _ in range(replicates):
        drawn = np.bincount(generator.integers(0, n_clusters, n_clusters), minlength=n_clusters)
        times = drawn[code]
        values.append((times * weight * loss).sum() / (times * weight).sum())
    return np.array(values)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--decisions", type=int, default=1_000_000)
    parser.add_argument("--replicates", type=int, default=1000)
    options = parser.parse_args()
    log, probabilities = make(options.decisions)
    policy = view(log, probabilities)
    arrays = (log.loss, policy.weight, log.cluster)
    model = {"predicted": policy.predicted, "predicted_policy": policy.predicted_policy}
    print(f"{options.decisions:,} decisions, {N_ACTIONS} actions, {log.clusters.size:,} stays\n")
    print("| point estimate with its interval | seconds |\n|---|---|")
    for name, call in {
        "weigh (checks 25 probabilities a row)": lambda: weigh(
            probabilities, log.action, log.propensity
        ),
        "ips": lambda: ips(*arrays),
        "snips": lambda: snips(*arrays),
        "clipped_ips, clip chosen": lambda: clipped_ips(*arrays),
        "dm": lambda: dm(policy.predicted_policy, log.cluster),
        "dr": lambda: dr(*arrays, **model),
        "sndr": lambda: sndr(*arrays, **model),
        "switch_dr, switch chosen": lambda: switch_dr(*arrays, **model),
        "dr_shrinkage, shrinkage chosen": lambda: dr_shrinkage(*arrays, **model),
        "view (checks, weighs, averages the model)": lambda: view(log, probabilities),
        "diagnosis and verdict": lambda: judge(diagnose(log, policy)),
        "all eight estimators, gain, diagnosis and verdict": lambda: assess(log, probabilities),
    }.items():
        print(f"| {name} | {seconds(call):.3f} |")
    print(f"\n| {options.replicates} bootstrap replicates of SNIPS, by stay | seconds | extra MB |")
    print("|---|---|---|")
    each = np.arange(options.decisions)
    for name, call in {
        "percentile": lambda: snips(*arrays, interval=Percentile(replicates=options.replicates)),
        "studentised": lambda: snips(*arrays, interval=Studentised(replicates=options.replicates)),
        "percentile, every decision a stay of its own": lambda: snips(
            *arrays[:2], each, interval=Percentile(replicates=options.replicates)
        ),
    }.items():
        print(f"| {name} | {seconds(call, runs=3):.2f} | {extra_megabytes(call):.0f} |")
    start = time.process_time()
    plain_bootstrap(
        log.loss, policy.weight, log.clusters.code, log.clusters.size, replicates=PLAIN_REPLICATES
    )
    plain = (time.process_time() - start) * options.replicates / PLAIN_REPLICATES
    ours = seconds(
        lambda: snips(*arrays, interval=Percentile(replicates=options.replicates)), runs=3
    )
    print(f"| plain loop ({PLAIN_REPLICATES} replicates, scaled) | {plain:.2f} | |")
    print(f"\nPlain loop over ours, percentile: {plain / ours:.0f} times.")


if __name__ == "__main__":
    main()
