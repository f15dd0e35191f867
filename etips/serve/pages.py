"""The pages: overview, stays, one stay with its decisions, and what if."""

from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from importlib.resources import files
from urllib.parse import parse_qs

import numpy as np
from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse
from jinja2 import ChoiceLoader, Environment, PackageLoader
from markupsafe import Markup
from starlette.exceptions import HTTPException

from etips.disclosure import shown_count
from etips.errors import EtipsError
from etips.explanation.measure_next import what_to_measure
from etips.explanation.similar import Neighbourhood, similar_decisions
from etips.report.page import SECTIONS, fill_sections
from etips.report.section import environment
from etips.results.records import NOTICE
from etips.serve.decision import (
    WAIT,
    all_parts,
    explain,
    make_decision,
    make_tracks,
    put_together,
    reason,
)
from etips.serve.drawings import action_chart, signed_bars, value_chart
from etips.serve.fields import Field, Value
from etips.serve.stays import FILTERS, ORDERS, ServedRun, StayList, StayView
from etips.serve.values import RANGES, Control, ranges_of, reach_of, show_fact, show_number

OVERVIEW = [own for own in SECTIONS if own.name in ("policies", "actions", "path")]
"""Sections of the report; the rest is in `etips report`."""

_CHARTED_FIRST = ("MeanBP", "HR", "Arterial_lactate", "SOFA", "SpO2", "Creatinine", *RANGES)
_ROWS_A_PAGE = 40
_CHARTS = 6
_MAX_FIELDS = 4000
_MAX_MEASURED = 4
_WORTH_MEASURING = 0.01  # share of likely values that must change the answer
_ROWS_LOOKED_AT = 20_000


@cache
def templates() -> Environment:
    """Our own templates, then those of the report, whose style and words the pages use."""
    loaders = ChoiceLoader([PackageLoader("etips.serve"), PackageLoader("etips.report")])
    made = environment().overlay(loader=loaders)
    made.filters = {**made.filters, "plain": show_number}
    made.globals = {**made.globals, "notice": NOTICE, "meter": meter}
    return made


def meter(share: float | None, look: str) -> Markup:
    """A small bar; its width is set by our script, since pages hold no styles."""
    width = f"width:{100 * min(max(share or 0.0, 0.0), 1.0):.0f}%"
    bar = Markup('<span class="meter {}" aria-hidden="true"><i data-style="{}"></i></span>')
    return bar.format(look, width)


def without_styles(page: str) -> Markup:
    """Drawings of the report with their sizes where the policy for contents allows them.

    It forbids styles inside a page; a script of ours sets them from `data-style`. What is text has
    its quotation marks escaped, so that only attributes are meant.
    """
    return Markup(page.replace(' style="', ' data-style="'))  # noqa: S704


@cache
def assets() -> Mapping[str, tuple[bytes, str]]:
    """Content and media type of all files that can be asked for: so that no name is ever a path."""
    report, own = files("etips.report") / "templates", files("etips.serve") / "assets"
    style = (report / "style.css").read_bytes() + b"\n" + (own / "serve.css").read_bytes()
    return {
        "style.css": (style, "text/css"),
        "serve.js": ((own / "serve.js").read_bytes(), "text/javascript"),
        "htmx.min.js": ((own / "htmx.min.js").read_bytes(), "text/javascript"),
        "icon.svg": ((own / "icon.svg").read_bytes(), "image/svg+xml"),
    }


class Pages:
    """What the pages show of a run; a method a page, or a part of one."""

    def __init__(self, run: ServedRun) -> None:
        self.run, self.scaler = run, run.advisor.policy.scaler
        self.sequence, self.static = run.advisor.form.sequence, run.advisor.form.static
        head = None if run.results is None else run.results.headline
        self.verdict = None if head is None else head.verdict
        """On the policy that is served; None where it was not evaluated."""
        self.ranges = ranges_of([field.name for field in self.sequence], self.scaler)
        self.fields: dict[str, Field] = {
            **{f"s{k}": field for k, field in enumerate(self.sequence)},
            **{f"t{k}": field for k, field in enumerate(self.static)},
        }
        """What can be changed, by its key in a request."""
        order = {name: k for k, name in enumerate(dict.fromkeys(_CHARTED_FIRST))}
        numbers = [k for k, field in enumerate(self.sequence) if not field.levels]
        numbers.sort(key=lambda k: order.get(self.sequence[k].name, len(order)))
        self.usual = tuple(numbers[:_CHARTS])
        """Fields that are charted unless others are chosen: those with a range, then the first."""
        self.neighbours: Neighbourhood | str = ""
        """The log made ready for similar decisions, or why it is not."""
        self.reach: dict[str, tuple[float, float]] = {}
        """Where sliders begin and end, by key."""
        if run.stays is not None:
            self._look_at(run.stays)
        results = run.results
        finding, sections = (None, []) if results is None else fill_sections(results, OVERVIEW)
        self.overview = _render(
            "overview.html",
            here="overview",
            title=run.name,
            card=run.card,
            stays=run.stays,
            finding=None if finding is None else without_styles(finding),
            sections=[(section, without_styles(body)) for section, body in sections],
        )
        """The first page, in the words and drawings of the report."""

    def _look_at(self, stays: StayList) -> None:
        try:
            self.neighbours = Neighbourhood.of(self.run.advisor.policy, stays.data)
        except EtipsError as error:
            self.neighbours = reason(error)
        steps = np.nanmin(np.asarray(stays.data.sequence[:_ROWS_LOOKED_AT], np.float32), axis=0)
        fixed = np.nanmin(np.asarray(stays.data.static), axis=0)
        for key, field in self.fields.items():
            lowest = float((fixed if field.static else steps)[field.columns[0]])
            self.reach[key] = reach_of(field.name, lowest, self.scaler)

    def stays(self, request: Request) -> str:
        """The list of stays."""
        query, stays = request.query_params, self.run.stays
        order, show = query.get("sort", ""), query.get("show", "")
        order = order if order in ORDERS else "disagreement"
        show = show if show in FILTERS else "all"
        code = query.get("code", "")[:64]
        code = code if code.isalnum() and code.isascii() else ""
        rows = [] if stays is None else stays.select(order, show, code)
        last = max(-(-len(rows) // _ROWS_A_PAGE) - 1, 0)
        page = min(_whole(query.get("page", "")), last)
        return _render(
            "stays.html",
            here="stays",
            title="Stays",
            rows=rows[page * _ROWS_A_PAGE : (page + 1) * _ROWS_A_PAGE],
            logged=stays is not None and stays.data.logged,
            there=stays is not None,
            count=shown_count(len(rows)),
            orders=ORDERS,
            shown=FILTERS,
            order=order,
            show=show,
            code=code,
            page=page,
            last=last,
        )

    def stay(self, request: Request) -> str:
        """One stay at one of its decisions: the page, or the part that changes."""
        view = self._view(request)
        charted = self.charted(request.query_params.get("f", ""))
        controls = {key: self._control(view, key) for key in self.fields}
        first = [controls.pop(f"s{k}") for k in charted]
        return _render(
            "stay_decision.html" if "hx-request" in request.headers else "stay.html",
            here="stays",
            title=f"Stay {view.code}",
            charts=[self._chart(view, self.sequence[k]) for k in charted],
            tracks=[
                (track.name, action_chart(track, view.steps, view.at))
                for track in make_tracks(view)
            ],
            controls={"first": first, "more": list(controls.values())},
            fields=[(k, own.name) for k, own in enumerate(self.sequence) if not own.levels],
            charted=charted,
            f="-".join(map(str, charted)),
            ranges=any(self.ranges.get(self.sequence[k].name) for k in charted),
            facts=[
                (own.name, show_fact(own.name, view.value(own), self.scaler)) for own in self.static
            ],
            **self._decision(view),
        )

    def answer(self, request: Request) -> str:
        """What an answer, part by part, comes to."""
        view, query = self._view(request), request.query_params
        answers = [query.get(f"part-{k}", WAIT) for k in range(len(all_parts(view)))]
        return _render("stay_answer.html", sentences=put_together(view, answers))

    def why(self, request: Request) -> str:
        """What speaks for the advice, similar patients, and what to measure next."""
        view, near = self._view(request), self.neighbours
        similar, measured = None, []
        if not isinstance(near, str):
            try:
                similar = similar_decisions(near, view.stay, view.step)
                measured = what_to_measure(near, view.stay, view.step)
            except EtipsError:  # nothing can be said of this decision
                pass
        return _render(
            "stay_why.html",
            similar=similar,
            missing=near if isinstance(near, str) else "",
            measured=[own for own in measured if own.changes >= _WORTH_MEASURING][:_MAX_MEASURED],
            names=self.run.advisor.names,
            **_reasons(view),
        )

    def what_if(self, request: Request, body: bytes) -> str:
        """The decision with other values."""
        view = self._view(request)
        changes: dict[Field, Value] = {}
        try:
            given = parse_qs(body.decode(), max_num_fields=_MAX_FIELDS)
        except ValueError:
            raise HTTPException(422) from None
        for key, field in self.fields.items():
            if key in given:
                value = self._control(view, key).read(given[key][-1].strip(), field.least)
                if value is not None:
                    changes[field] = value
        changed = view.changed(changes) if changes else view
        return _render(
            "stay_changed.html",
            changed=bool(changes),
            before="wait" if view.abstained else self.run.advisor.names[view.advised],
            same=(view.abstained, view.advised) == (changed.abstained, changed.advised),
            **{**self._decision(changed), **_reasons(changed)},
        )

    def charted(self, chosen: str) -> tuple[int, ...]:
        """Which fields are charted: the numbers that are chosen, or the usual ones."""
        allowed = {k for k, field in enumerate(self.sequence) if not field.levels}
        numbers = dict.fromkeys(_whole(number) for number in chosen.split("-") if number)
        return tuple(k for k in numbers if k in allowed)[: 2 * _CHARTS] or self.usual

    def _view(self, request: Request) -> StayView:
        """The decision that a request is about; not found where there is no such stay."""
        stays, at = self.run.stays, _whole(request.query_params.get("at", ""))
        view = None if stays is None else stays.view(request.path_params["code"], at)
        if view is None:
            raise HTTPException(404)
        return view

    def _decision(self, view: StayView) -> dict[str, object]:
        return {"view": view, "card": make_decision(view), "verdict": self.verdict, "wait": WAIT}

    def _chart(self, view: StayView, field: Field) -> tuple[str, object, object]:
        values = view.features[:, field.columns[0]].astype(np.float64)
        measured = [not field.missing(row) for row in view.features]
        normal = self.ranges.get(field.name)
        return field.name, value_chart(field.name, values, measured, view.row, normal), normal

    def _control(self, view: StayView, key: str) -> Control:
        field = self.fields[key]
        return Control.of(key, field, view.value(field), self.reach[key], self.scaler)


def add_pages(
    app: FastAPI, run: ServedRun, in_turn: Callable[[Callable[[], str]], Awaitable[str]]
) -> None:
    """Give an application the pages; `in_turn` does their work outside the event loop."""
    pages = Pages(run)

    @app.get("/", include_in_schema=False)
    async def overview() -> Response:
        return HTMLResponse(pages.overview)

    def add(path: str, page: Callable[[Request], str]) -> None:
        @app.get(path, include_in_schema=False)
        async def answer(request: Request) -> Response:
            return HTMLResponse(await in_turn(lambda: page(request)))

    add("/stays", pages.stays)
    add("/stays/{code}", pages.stay)
    add("/stays/{code}/answer", pages.answer)
    add("/stays/{code}/why", pages.why)

    @app.post("/stays/{code}/what-if", include_in_schema=False)
    async def what_if(request: Request) -> Response:
        body = await request.body()
        return HTMLResponse(await in_turn(lambda: pages.what_if(request, body)))

    @app.get("/assets/{name}", include_in_schema=False)
    async def asset(name: str) -> Response:
        if name not in assets():
            raise HTTPException(404)
        content, kind = assets()[name]
        return Response(content, media_type=kind)


def _render(template: str, **context: object) -> str:
    return templates().get_template(template).render(**context)


def _reasons(view: StayView) -> dict[str, object]:
    why = explain(view)
    return {"view": view, "why": why, "bars": signed_bars(why.bars) if why.bars else None}


def _whole(text: str) -> int:
    """A whole number from a request; 0 where it is none."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 9 else 0
