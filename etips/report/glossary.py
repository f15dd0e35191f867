"""Words of the page in plain language: policies, formulas, measures."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from etips.evaluation.estimators import ESTIMATORS
from etips.studies.paper_tables import NAMES

Word = tuple[str, str]
"""A word and what it means."""

POLICIES = {
    "etips": "Learnt from weighted decisions, a translation taken off the loss.",
    "tips": "As etips, with propensities that are known, not estimated.",
    "eips": "Learnt from weighted decisions without a translation.",
    "ips": "As eips, with propensities that are known, not estimated.",
    "direct": "Predicts the loss of every action and takes the least.",
    "doubly-robust": "Learnt from predicted losses, corrected by weighted decisions.",
    "predictive": "Imitates the clinicians.",
    "most-frequent": "Gives everybody the action that was logged most often.",
    "random": "Every action alike, whoever the patient.",
}

MEASURES = (
    ("Verdict", "Whether the log can carry the number: reliable, doubtful or unusable."),
    ("Risk", "Mean loss after a decision, had the policy decided, with its 95\u00a0% interval."),
    (
        "Weight",
        "How much likelier the policy is to do what was done than the clinicians were.",
    ),
    (
        "Matching factor",
        "Mean weight. It should be 1; far from it, the policy does what the log does not hold.",
    ),
    (
        "Effective sample size",
        "How many equally weighted decisions would carry as much evidence.",
    ),
)


def policy_words(
    methods: Iterable[Mapping[str, Any]], settings: Mapping[str, Any], *, in_tables: bool
) -> list[Word]:
    """The policies of a document that are known by name or by the method on record.

    Args:
        methods: The document's.
        settings: Its settings; those of a run name its method.
        in_tables: Whether the page has tables, which use the paper's names.
    """
    found = []
    for method in methods:
        own = settings.get(method["name"])
        kind = own.get("method") if isinstance(own, Mapping) else method["name"]
        if kind not in POLICIES:
            continue
        there = NAMES.get(str(kind))
        also = f" In the tables below: {there}." if in_tables and there else ""
        found.append((str(method["name"]), POLICIES[str(kind)] + also))
    return found


def formula_words(methods: Iterable[Mapping[str, Any]]) -> Sequence[Word]:
    """The formulas that the document used and we know, in its order."""
    used = dict.fromkeys(e["estimator"] for m in methods for e in m["estimates"])
    return [(name, ESTIMATORS[name].sentence) for name in used if name in ESTIMATORS]
