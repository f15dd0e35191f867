"""The translation path: every candidate, how it was judged, which one was kept."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from etips.report.plots import Guides, plot
from etips.report.section import Figure, Section
from etips.results.path_candidate import TRANSLATED, PathCandidate
from etips.results.results import Results
from etips.results.study_result import Chart, Series


@dataclass(frozen=True)
class DrawnPath:
    """The candidates of one policy.

    Args:
        name: Of the policy.
        figures: Three drawings, if there is more than one candidate to draw.
        rows: What to call each candidate, and the candidate.
        chosen: The kept one.
        kept: What the kept one is called.
        constant: Whether it gives everybody the same action.
        n_candidates: How many there were to choose from.
    """

    name: str
    figures: Sequence[Figure]
    rows: Sequence[tuple[str, PathCandidate]]
    chosen: PathCandidate | None
    kept: str
    constant: bool
    n_candidates: int


def _make(results: Results) -> dict[str, object] | None:
    exhibits = results.exhibits
    if exhibits is None or not exhibits.paths:
        return None
    actions = results.data.actions or exhibits.actions.names
    mean_loss = results.data.mean_loss
    paths = sorted(exhibits.paths.items(), key=lambda own: own[0] != exhibits.headline)
    return {"paths": [_drawn(name, path, mean_loss, actions) for name, path in paths]}


SECTION = Section("path", "The translation path", "candidate_path.html", _make)


def _drawn(
    name: str, path: Sequence[PathCandidate], mean_loss: float | None, actions: Sequence[str]
) -> DrawnPath:
    fixed = [(c.risk, c) for c in path if c.action is not None and c.risk is not None]
    chosen = next((c for c in path if c.chosen), None)
    constant = chosen is not None and chosen.action is not None
    best = min(fixed, key=lambda pair: pair[0], default=(None, None))[1]
    kept = chosen if constant else best
    rows = [*(c for c in path if c.action is None), *([kept] if kept is not None else [])]
    trained = _along(path, chosen)
    return DrawnPath(
        name=name,
        figures=_figures(trained, mean_loss) if len(trained) > 1 else (),
        rows=[(candidate.called_with(actions), candidate) for candidate in rows],
        chosen=chosen,
        kept="" if chosen is None else chosen.called_with(actions),
        constant=constant,
        n_candidates=len(path),
    )


def _along(path: Sequence[PathCandidate], chosen: PathCandidate | None) -> list[PathCandidate]:
    """Those trained with a translation alone, acting as the kept one does."""
    shifted = [c for c in path if c.action is None and c.translation is not None]
    trained = [c for c in shifted if c.form == TRANSLATED]
    form = chosen.acts if chosen in trained and chosen is not None else None
    forms = [form] if form is not None else [c.acts for c in trained[:1]]
    return [c for c in trained if c.acts in forms]


def _figures(trained: Sequence[PathCandidate], mean_loss: float | None) -> list[Figure]:
    clinicians = None if mean_loss is None else (mean_loss, "clinicians")
    errors = tuple(c.std_error and 1.96 * c.std_error for c in trained)
    return [
        _figure(trained, "Held-out risk (SNIPS)", lambda c: c.risk, clinicians, errors),
        _figure(
            trained, "Matching factor", lambda c: c.matching_factor, (1.0, "1: as many as expected")
        ),
        _figure(trained, "Effective sample size", lambda c: c.effective_size),
    ]


def _figure(
    trained: Sequence[PathCandidate],
    title: str,
    height: Callable[[PathCandidate], float | None],
    across: tuple[float, str] | None = None,
    errors: tuple[float | None, ...] | None = None,
) -> Figure:
    points = Series(
        title,
        x=tuple(c.translation for c in trained),
        y=tuple(height(c) for c in trained),
        error=errors,
    )
    guides = Guides(
        across=across,
        hollow=[place for place, c in enumerate(trained) if not c.sound],
        chosen=next((place for place, c in enumerate(trained) if c.chosen), None),
    )
    return title, plot(Chart("", "lines", title, None, "translation", title, (points,)), guides)
