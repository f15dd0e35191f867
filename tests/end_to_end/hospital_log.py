"""A hospital's log of decisions, and how the tests of commands call it."""

import etips

QUICK = ("hidden=6", "epochs=2", "n_folds=2", "translations=0.3,0.7")
COLUMNS = ("--stay", "patient", "--step", "t", "--action", "dose", "--loss", "harm")
STATIC = ("--static", "age,weight")
METHODS = ("etips", "tips", "eips", "ips", "direct", "direct-stay", "doubly-robust", "predictive")
SIMPLE = ("random", "most-frequent")
ROWS = ("q-learning", "ai-clinician")


def settings_for(method="etips"):
    """Options that make a method learn in a blink."""
    if method in (*SIMPLE, *ROWS):
        return ["--method", method]
    grid = method in ("etips", "tips")
    settings = [p for e in QUICK if grid or "translations" not in e for p in ("--set", e)]
    return ["--method", method, *settings]


def read(path, lag=1):
    """The log as the commands read it."""
    roles = {"stay": "patient", "step": "t", "action": "dose", "loss": "harm"}
    return etips.read_table(path, **roles, static=["age", "weight"], lag=lag)
