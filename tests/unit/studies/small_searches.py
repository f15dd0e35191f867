"""A search small enough to run in a blink."""

from etips.learn.learners.ranges import Choice, Range

TINY = {
    "hidden": Choice((4,)),
    "epochs": Choice((1,)),
    "n_folds": Choice((2,)),
    "translations": Choice(([0.3, 0.7],)),
    "learning_rate": Range(1e-3, 1e-1, log=True),
    "encoder": Choice(("gru", "lstm")),
}
QUICK = {"hidden": 4, "epochs": 1, "n_folds": 2}
"""Settings of a learner that is fitted in a blink."""
