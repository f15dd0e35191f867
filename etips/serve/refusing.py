"""What is wrong with a request, in words that repeat nothing of it (goal W5)."""

from collections.abc import Collection

from pydantic import ValidationError

from etips.serve.spoken import Fault, Refusal

_MOST = 20
_BRANCHES = ("float", "constrained-float", "none")
_RULES = {
    "missing": "must be given",
    "extra_forbidden": "is not a field of the training data",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "greater_than_equal": "is below what is possible",
    "less_than_equal": "is above what is possible",
    "literal_error": "must be one of the levels that the training data have",
    "bool_type": "must be true or false",
    "list_type": "must be a list",
    "too_short": "must not be empty",
    "too_long": "has too many entries",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "json_invalid": "must be JSON",
}


def refuse_request(error: ValidationError, known: Collection[str]) -> Refusal:
    """Places and rules of what pydantic found.

    Args:
        error: What it found.
        known: Keys that may be repeated, since the description of the service has them.
    """
    found = error.errors(include_url=False, include_context=False, include_input=False)
    faults = [
        Fault(
            place=_place(own["loc"], known),
            rule=_RULES.get(own["type"], "is not as the description says"),
        )
        for own in found[:_MOST]
    ]
    more = len(found) - len(faults)
    words = "the request is not as the description says"
    return Refusal(detail=f"{words}; {more} more faults" if more else words, faults=faults)


def _place(location: tuple[int | str, ...], known: Collection[str]) -> str:
    """Where it is; a key that nobody knows is a question mark."""
    parts = [f"[{own}]" if isinstance(own, int) else _key(own, known) for own in location]
    return ".".join(part for part in parts if part).replace(".[", "[") or "body"


def _key(key: str, known: Collection[str]) -> str:
    """Branches of a union, which pydantic names too, are nobody's field."""
    if key in known:
        return key
    return "" if key in _BRANCHES or key.startswith("literal[") else "?"
