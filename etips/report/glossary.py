"""Words of the page in plain language: policies, formulas, measures."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from etips.evaluation.estimators import ESTIMATORS
from etips.learn.learners.catalogue import find_method

Word = tuple[str, str]
"""A word and what it means."""

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
        known = find_method(str(kind))
        if known is None:
            continue
        also = f" In the tables below: {known.label}." if in_tables else ""
        found.append((str(method["name"]), known.sentence + also))
    return found


def formula_words(methods: Iterable[Mapping[str, Any]]) -> Sequence[Word]:
    """The formulas that the document used and we know, in its order."""
    used = dict.fromkeys(e["estimator"] for m in methods for e in m["estimates"])
    return [(name, ESTIMATORS[name].sentence) for name in used if name in ESTIMATORS]
