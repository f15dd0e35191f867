"""Makes obp.csv: estimates of 1000 random logs by Open Bandit Pipeline, an independent library.

obp needs older libraries than we do, so run this in a virtual environment of its own:

    pip install obp==0.4.1 "numpy<2"
    python make_obp_reference.py

Only the estimates are stored. The logs are drawn again from their seeds by `random_log`; the sum of
their numbers is stored too, so that a change of NumPy's generators would not go unnoticed.
"""

import csv
from pathlib import Path
from typing import NamedTuple

import numpy as np

N_LOGS = 1000
COLUMNS = ("inputs", "ips", "snips", "dm", "dr", "sndr", "switch_dr", "dr_shrinkage")


class RandomLog(NamedTuple):
    loss: np.ndarray  # (n,)
    action: np.ndarray  # (n,)
    propensity: np.ndarray  # (n,)
    probabilities: np.ndarray  # (n, n_actions)
    predicted: np.ndarray  # (n, n_actions)
    switch: float
    shrinkage: float

    def total(self):
        arrays = (self.loss, self.action, self.propensity, self.probabilities, self.predicted)
        return float(sum(a.sum() for a in arrays) + self.switch + self.shrinkage)


def random_log(seed):
    """2 to 400 decisions, 2 to 25 actions; binary or continuous loss; soft or hard policy."""
    generator = np.random.default_rng(seed)
    n = 2 + int(generator.random() * 399)
    n_actions = 2 + int(generator.random() * 24)
    logging = _softmax(6 * generator.random((n, n_actions)))
    action = (generator.random(n)[:, None] > logging.cumsum(axis=1)).sum(axis=1)
    action = action.clip(max=n_actions - 1)
    draw = generator.random(n)
    loss = (draw < 0.3).astype(float) if seed % 2 else draw
    policy = _softmax(8 * generator.random((n, n_actions)))
    if seed % 3 == 0:
        policy = np.eye(n_actions)[policy.argmax(axis=1)]
        policy[0] = np.eye(n_actions)[action[0]]  # at least one match, or SNIPS is undefined
    return RandomLog(
        loss=loss,
        action=action,
        propensity=logging[np.arange(n), action],
        probabilities=policy,
        predicted=generator.random((n, n_actions)),
        switch=0.5 + 5 * generator.random(),
        shrinkage=20 * generator.random(),
    )


def _softmax(scores):
    weight = np.exp(scores)
    return weight / weight.sum(axis=1, keepdims=True)


def estimate_by_obp(log):
    from obp import ope

    feedback = {
        "reward": log.loss,
        "action": log.action,
        "pscore": log.propensity,
        "action_dist": log.probabilities[:, :, None],
        "estimated_rewards_by_reg_model": log.predicted[:, :, None],
        "position": np.zeros(log.loss.size, dtype=int),
    }
    estimators = (
        ope.InverseProbabilityWeighting(),
        ope.SelfNormalizedInverseProbabilityWeighting(),
        ope.DirectMethod(),
        ope.DoublyRobust(),
        ope.SelfNormalizedDoublyRobust(),
        ope.SwitchDoublyRobust(tau=log.switch),
        ope.DoublyRobustWithShrinkage(lambda_=log.shrinkage),
    )
    return [float(estimator.estimate_policy_value(**feedback)) for estimator in estimators]


def main():
    with Path(__file__).with_name("obp.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for seed in range(N_LOGS):
            log = random_log(seed)
            writer.writerow([repr(log.total()), *map(repr, estimate_by_obp(log))])


if __name__ == "__main__":
    main()
