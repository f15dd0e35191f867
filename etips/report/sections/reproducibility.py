"""Settings and versions: all that it takes to get the same numbers again."""

from collections.abc import Mapping

from etips.report.section import Section
from etips.results.exhibits import Record
from etips.results.results import Results
from etips.results.study_result import StudyResult

_HISTORY = {
    True: "a decision sees the steps before it (lag 1)",
    False: "a decision sees its own step too (lag 0)",
}


def _make(results: Results) -> dict[str, object]:
    exhibits, head = results.exhibits, results.headline
    return {
        "settings": _settings(results) | {"history": _HISTORY[results.data.lag == 1]},
        "seeds": {} if exhibits is None else exhibits.seeds,
        "versions": {} if exhibits is None else exhibits.versions,
        "provenance": results.data.provenance,
        "fingerprint": "not recorded" if exhibits is None else exhibits.fingerprint,
        "notes": None if head is None else head.notes,
    }


SECTION = Section("settings", "Settings and versions", "reproducibility.html", _make)


def _settings(results: Results) -> dict[str, str]:
    """The settings on record, but for what stands at the top of the page already."""
    settings = {} if results.exhibits is None else results.exhibits.settings
    above = set()
    if isinstance(results, StudyResult):
        above = {name for name in ("title", "lead") if getattr(results, name)}
    return _flat({name: value for name, value in settings.items() if name not in above})


def _flat(settings: Record) -> dict[str, str]:
    """Settings within settings, one under the other; the innermost in one line."""
    flat: dict[str, str] = {}
    for key, value in settings.items():
        if isinstance(value, Mapping) and any(isinstance(v, Mapping) for v in value.values()):
            flat |= {f"{key}: {inner}": words for inner, words in _flat(value).items()}
        elif isinstance(value, Mapping) and value:
            flat[key] = "; ".join(f"{inner} {_words(v)}" for inner, v in value.items())
        else:
            flat[key] = _words(value)
    return flat


def _words(value: object) -> str:
    """A setting in words."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple | Mapping):
        return ", ".join(map(_words, value)) or "none"
    return "none" if value is None else str(value)
