"""Which learners there are, for options: told without torch, which a learner needs."""

from typing import Annotated

import typer

from etips.errors import SettingError

NAMES = (
    *("auto", "etips", "tips", "eips", "ips", "direct", "direct-stay", "doubly-robust"),
    *("beta-ips", "log-sum-exp", "log-smoothing", "exponential-smoothing", "weighted-likelihood"),
    *("pessimistic", "predictive"),
    *("q-learning", "owl", "rwl", "poem", "norm-poem", "bandit-net", "ai-clinician"),
    *("random", "most-frequent"),
)
"""What the help pages list: the names of the catalogue, which has the last word."""

USUAL = NAMES[0]

ADVICE = (
    f"{USUAL} if left out, which we recommend: models of every kind, stacked, that lean to the "
    "clinicians; etips is the paper's (docs/method/learning.md)."
)
"""Which to take; what it rests on is in the documents."""

MethodOption = Annotated[
    str | None,
    typer.Option(metavar="NAME", help=f"Learner: {', '.join(NAMES)}. {ADVICE}"),
]


def require_method_name(name: str | None) -> None:
    """Refuse a method that is not there; the catalogue is only opened for a name not listed."""
    if name is None or name in NAMES:
        return
    from etips.learn.learners.catalogue import METHODS  # noqa: PLC0415  # with torch

    if name not in METHODS:
        raise SettingError("--method", f"must be one of {', '.join(METHODS)}")
