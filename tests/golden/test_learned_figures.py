"""What small learners learn, to the digit: a refactoring that changes a figure is seen at once.

The whole record takes minutes: `make golden`. On the machine that the figures come from they hold
to 1e-9; another processor or torch rounds otherwise, and training carries that on.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from record import machine

import etips
from etips.evaluation import dr, snips, weigh
from etips.learn import Settings, Training
from etips.worlds import icu_sepsis

PINNED = Path(__file__).with_name("learned_figures.json")
QUICK = Training(
    n_folds=2, **dict.fromkeys(("policy", "propensity", "outcome"), Settings(epochs=3))
)
LEARNERS = {
    "etips": lambda: etips.EtIPS(training=QUICK, translations=(0.3, 0.6), seed=5),
    "etips-paper": lambda: etips.EtIPS(
        training=QUICK, translations=(0.3, 0.6), init="random", selection="paper", kl=0.0, seed=5
    ),
    "tips": lambda: etips.TIPS(training=QUICK, translations=(0.3, 0.6), seed=5),
    "eips": lambda: etips.EIPS(training=QUICK, seed=5),
    "direct": lambda: etips.DirectMethod(training=QUICK, seed=5),
    "additive": lambda: etips.DirectMethod(training=QUICK, seed=5, interaction=False),
    "doubly-robust": lambda: etips.DoublyRobust(training=QUICK, seed=5),
    "predictive": lambda: etips.PredictiveModel(training=QUICK, seed=5),
}


def figures(name: str, lag: int) -> list[float]:
    """Probabilities and risks of a learner on stays it has not seen."""
    data = icu_sepsis.simulate(260, seed=11, lag=lag)
    learned, asked = etips.split(data, test=0.4, seed=1)
    policy = LEARNERS[name]().fit(learned)
    probabilities = policy.predict_proba(asked)
    action, loss, stay = asked.logged_action, asked.logged_loss, asked.decisions().stay
    weight = weigh(probabilities, action, asked.logged_propensity)
    rows = np.arange(len(action))
    predicted = np.full(probabilities.shape, loss.mean())
    risk = snips(loss, weight, stay)
    model = {"predicted": predicted[rows, action]}
    model["predicted_policy"] = (predicted * probabilities).sum(1)
    robust = dr(loss, weight, stay, **model)
    every = probabilities[:: max(1, len(rows) // 10)]
    return [*np.round(every[:, :3].ravel(), 15), risk.risk, risk.std_error, robust.risk]


@pytest.mark.parametrize("lag", [0, 1])
@pytest.mark.parametrize("name", list(LEARNERS))
def test_a_learner_learns_what_it_learned(name, lag):
    pinned = json.loads(PINNED.read_text())
    within = 1e-9 if pinned["machine"] == machine() else 0.02
    assert figures(name, lag) == pytest.approx(pinned["figures"][f"{name}, lag {lag}"], abs=within)


if __name__ == "__main__":  # remakes the file
    made = {f"{name}, lag {lag}": figures(name, lag) for name in LEARNERS for lag in (0, 1)}
    document = {"machine": machine(), "figures": made}
    PINNED.write_text(json.dumps(document, indent=1) + "\n")
