"""Results as data: what was evaluated, each policy's estimates, diagnosis, verdict and truth.

These dataclasses are `results.json`: `to_json` writes them, `etips.results.parsing` reads them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Literal

from etips.errors import SettingError
from etips.results.conclusions import conclude
from etips.results.exhibits import Exhibits
from etips.results.records import (
    STRICT,
    DataSummary,
    EstimateResult,
    GainResult,
    MethodResult,
    ShiftResult,
    to_json,
)

_FILE, _NOTEBOOK = "etips.report.page", "etips.report.tables"
"""How results look is decided in layers above them, which are imported by name when asked for."""


Library = Literal["pandas", "polars"]

Value = str | float | bool | None
"""Of a cell; None is hidden or not known."""

COLUMNS = (
    *("policy", "verdict", "estimator", "risk", "std_error", "low", "high"),
    *("difference", "difference_low", "difference_high", "better"),
    *("better_at_one_decision", "in_sample"),
    *("matching_factor", "effective_sample_size", "true_risk", "finding", "reasons"),
)
"""Of a row, in this order."""

_NO_ESTIMATE = EstimateResult("none", risk=None, std_error=None, low=None, high=None)


def flat_rows(
    methods: Iterable[MethodResult], data: DataSummary, *, every_estimator: bool = False
) -> list[Mapping[str, Value]]:
    """One row a policy, of the headline alone, or one a policy and estimator."""
    return [row for own in methods for row in _rows(own, data, every=every_estimator)]


def _rows(method: MethodResult, data: DataSummary, *, every: bool) -> Iterator[Mapping[str, Value]]:
    gain, diagnostics = method.gain or GainResult(), method.diagnostics
    estimates = method.estimates or (_NO_ESTIMATE,)
    for estimate in estimates if every else estimates[:1]:
        values: tuple[Value, ...] = (
            method.name,
            method.verdict or "no verdict",
            estimate.estimator,
            *(estimate.risk, estimate.std_error, estimate.low, estimate.high),
            *(gain.difference, gain.low, gain.high, gain.better),
            *(gain.better_at_one_decision, method.in_sample),
            None if diagnostics is None else diagnostics.matching_factor,
            None if diagnostics is None else diagnostics.effective_sample_size,
            method.truth,
            conclude(method, data).words,
            join_reasons(method.reasons),
        )
        yield dict(zip(COLUMNS, values, strict=True))


def join_reasons(reasons: Iterable[str]) -> str:
    """Reasons of a verdict in one cell."""
    return "; ".join(reason.rstrip(".") for reason in reasons)


def make_frame(
    rows: Sequence[Mapping[str, object]], names: Sequence[str], library: Library | None = None
) -> Any:  # noqa: ANN401  # a foreign object
    """A frame of rows that have the same columns: of pandas where it is installed, else polars."""
    if library not in (None, "pandas", "polars"):
        raise SettingError("library", "must be pandas or polars")
    if library is None:
        library = "pandas" if find_spec("pandas") is not None else "polars"
    if library == "pandas" and find_spec("pandas") is None:
        raise SettingError("library", "must be polars: pandas is not installed")
    return import_module(library).DataFrame({name: [row[name] for row in rows] for name in names})


def describe(title: str, methods: Iterable[MethodResult], data: DataSummary) -> str:
    """The lines that Python prints of results."""
    loss = "" if data.mean_loss is None else f", mean logged loss {data.mean_loss:.4f}"
    lines = [f"{title} on {_shown(data.n_decisions, ',')} decisions{loss}"]
    for method in methods:
        words = conclude(method, data).words
        verdict = method.verdict or "no verdict"
        lines.append(f"  {method.name}: {words if verdict in words else f'{words} ({verdict})'}")
        for estimate in method.estimates[:1]:
            limits = f"[{_shown(estimate.low)}, {_shown(estimate.high)}]"
            lines.append(f"    {estimate.estimator} {_shown(estimate.risk)} {limits}")
        gain = method.gain
        if gain is not None and gain.difference is not None:
            limits = f"[{_shown(gain.low, '+.4f')}, {_shown(gain.high, '+.4f')}]"
            lines.append(f"    against the clinicians {gain.difference:+.4f} {limits}")
        lines += [f"    why {verdict}: {reason}" for reason in method.reasons]
    return "\n".join(lines)


def _shown(value: float | None, form: str = ".4f") -> str:
    return "?" if value is None else format(value, form)


@dataclass(frozen=True)
class Results:
    """An evaluation of one or more policies on the same decisions.

    Print it, look at it in a notebook, take it as a frame (`to_frame`), write it as a page
    (`report`) or as JSON (`to_json`).

    Args:
        exhibits: What a report shows beyond the estimates.
        shift: How the data differ from those of another source that a policy was learned on.
    """

    __pydantic_config__: ClassVar[dict[str, object]] = STRICT

    data: DataSummary
    methods: tuple[MethodResult, ...]
    seconds: float
    exhibits: Exhibits | None = None
    shift: ShiftResult | None = None

    @property
    def headline(self) -> MethodResult | None:
        """The policy that a report is about: the one its exhibits name, else the first."""
        wanted = None if self.exhibits is None else self.exhibits.headline
        first = self.methods[0] if self.methods else None
        return next((method for method in self.methods if method.name == wanted), first)

    def to_json(self) -> dict[str, object]:
        """The contract's results.json."""
        return to_json(self)

    def to_frame(self, *, every_estimator: bool = False, library: Library | None = None) -> Any:  # noqa: ANN401  # a foreign object
        """One row a policy: verdict, finding, risk, difference to the clinicians, reasons.

        Args:
            every_estimator: One row a policy and estimator, and not the headline alone.
            library: "pandas" or "polars"; left out, pandas where it is installed, else polars.
        """
        rows = flat_rows(self.methods, self.data, every_estimator=every_estimator)
        return make_frame(rows, COLUMNS, library)

    def report(self, path: str | PathLike[str]) -> Path:
        """Write the page that `etips report` writes, or its table if `path` ends in .csv.

        A file that is there already is replaced.
        """
        written: Path = import_module(_FILE).write_report(self, Path(path))
        return written

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        shown: str = import_module(_NOTEBOOK).show_policies(self)
        return shown

    def __repr__(self) -> str:
        return describe(type(self).__name__, self.methods, self.data)
