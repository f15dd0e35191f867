"""Results as data: what was evaluated, each policy's estimates, diagnosis, verdict and truth.

These dataclasses are `results.json`: `to_json` writes them, `etips.results.parsing` reads them.
"""

from dataclasses import dataclass
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

from etips.results.exhibits import Exhibits
from etips.results.plain_text import COLUMNS, Library, describe, flat_rows, make_frame
from etips.results.records import STRICT, DataSummary, MethodResult, ShiftResult, to_json

_FILE, _NOTEBOOK = "etips.report.page", "etips.report.tables"
"""How results look is decided in layers above them, which are imported by name when asked for."""


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
