"""The pages: overview, stays, one stay with its decisions, and what if."""

from collections.abc import Awaitable, Callable, Mapping
from functools import cache, cached_property
from importlib.resources import files
from urllib.parse import parse_qs

import numpy as np
from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse
from jinja2 import ChoiceLoader, Environment, PackageLoader
from markupsafe import Markup
from starlette.exceptions import HTTPException

from etips.disclosure import shown_count
from etips.explanation.similar import Neighbourhood
from etips.report.page import fill_sections
from etips.report.section import environment
from etips.report.sections.patients import ACTIONS
from etips.report.sections.policies import PATHS, POLICIES
from etips.results.records import NOTICE
from etips.serve.decision import (
    WAIT,
    all_parts,
    explain,
    find_measurements,
    find_neighbours,
    find_similar,
    make_decision,
    make_tracks,
    put_together,
)
from etips.serve.drawings import action_chart, signed_bars, value_chart
from etips.serve.fields import Field, Value
from etips.serve.state import FILTERS, ORDERS, ServedRun, StayList, StayView
from etips.serve.values import (
    RANGES,
    Control,
    make_control,
    ranges_of,
    reach_of,
    read_change,
    show_fact,
    show_number,
)

SECTIONS = (POLICIES, ACTIONS, PATHS)
"""Of the report; the rest is in `etips report`."""

_CHARTED_FIRST = ("MeanBP", "HR", "Arterial_lactate", "SOFA", "SpO2", "Creatinine", *RANGES)
_ROWS_A_PAGE = 40
_CHARTS = 6
_MAX_FIELDS = 4000
_ROWS_LOOKED_AT = 20_000
Query = Mapping[str, str]
Page = Callable[[], str]
InTurn = Callable[[Page], Awaitable[str]]


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
        self.run, self.form = run, run.advisor.form
        self.scaler = run.advisor.policy.scaler
        head = None if run.results is None else run.results.headline
        self.verdict = None if head is None else head.verdict
        """On the policy that is served; None where it was not evaluated."""
        self.neighbours: Neighbourhood | str = ""
        """The log made ready for similar decisions, or why it is not."""
        if run.stays is not None:
            self.neighbours = find_neighbours(run.advisor.policy, run.stays.data)
        self.ranges = ranges_of([own.name for own in self.form.sequence], self.scaler)
        self.fields: Mapping[str, Field] = {
            **{f"s{k}": own for k, own in enumerate(self.form.sequence)},
            **{f"t{k}": own for k, own in enumerate(self.form.static)},
        }
        """What can be changed, by its key in a request."""
        self.overview = self._overview()

    @cached_property
    def usual(self) -> tuple[int, ...]:
        """Fields that are charted unless others are chosen: those with a range, then the first."""
        fields = self.form.sequence
        order = {name: k for k, name in enumerate(dict.fromkeys(_CHARTED_FIRST))}
        numbers = [k for k, own in enumerate(fields) if not own.levels]
        numbers.sort(key=lambda k: order.get(fields[k].name, len(order)))
        return tuple(numbers[:_CHARTS])

    @cached_property
    def reach(self) -> dict[str, tuple[float, float]]:
        """Where sliders begin and end, by key."""
        data = self.listed.data
        steps = np.nanmin(np.asarray(data.sequence[:_ROWS_LOOKED_AT], np.float32), axis=0)
        stays = np.nanmin(np.asarray(data.static), axis=0)
        return {
            key: reach_of(
                own.name, float((stays if own.static else steps)[own.columns[0]]), self.scaler
            )
            for key, own in self.fields.items()
        }

    @property
    def listed(self) -> StayList:
        """The stays; not found where there are none."""
        if self.run.stays is None:
            raise HTTPException(404)
        return self.run.stays

    def view(self, code: str, query: Query) -> StayView:
        """The decision that a request is about; not found where there is no such stay."""
        stays = self.listed
        places = stays.decisions(code)
        if places.start == places.stop:
            raise HTTPException(404)
        return StayView.of(self.run.advisor, stays, code, _whole(query.get("at"), limit=100_000))

    def charted(self, query: Query) -> tuple[int, ...]:
        """Which fields are charted."""
        fields = self.form.sequence
        numbers = [_whole(own, limit=len(fields)) for own in query.get("f", "").split("-") if own]
        chosen = [k for k in dict.fromkeys(numbers) if k < len(fields) and not fields[k].levels]
        return tuple(chosen[: 2 * _CHARTS]) or self.usual

    def _overview(self) -> str:
        """The first page, in the words and drawings of the report."""
        results = self.run.results
        finding, sections = (None, []) if results is None else fill_sections(results, SECTIONS)
        return _render(
            "overview.html",
            here="overview",
            title=self.run.name,
            card=self.run.card,
            stays=self.run.stays,
            finding=None if finding is None else without_styles(finding),
            sections=[(section, without_styles(body)) for section, body in sections],
        )

    def stays(self, query: Query) -> str:
        """The list of stays."""
        order, show = query.get("sort", ""), query.get("show", "")
        order = order if order in ORDERS else "disagreement"
        show = show if show in FILTERS else "all"
        wanted = query.get("code", "")[:64]
        wanted = wanted if wanted.isalnum() and wanted.isascii() else ""
        stays = self.run.stays
        rows = [] if stays is None else stays.select(order, show, wanted)
        last = max(-(-len(rows) // _ROWS_A_PAGE) - 1, 0)
        page = min(_whole(query.get("page"), limit=10**6), last)
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
            code=wanted,
            page=page,
            last=last,
        )

    def stay(self, code: str, query: Query, *, whole: bool) -> str:
        """One stay at one of its decisions: the page, or the part that changes."""
        view = self.view(code, query)
        charted, fields = self.charted(query), self.form.sequence
        controls = {key: self._control(view, key) for key in self.fields}
        first = [controls.pop(f"s{k}") for k in charted]
        return _render(
            "stay.html" if whole else "stay_decision.html",
            here="stays",
            title=f"Stay {code}",
            charts=[self._chart(view, fields[k]) for k in charted],
            tracks=[
                (name, action_chart(track, view.steps, view.at, f"{name}: given and advised"))
                for name, track in make_tracks(view)
            ],
            controls={"first": first, "more": list(controls.values())},
            fields=[(k, own.name) for k, own in enumerate(fields) if not own.levels],
            charted=charted,
            f="-".join(map(str, charted)),
            ranges=any(self.ranges.get(fields[k].name) for k in charted),
            facts=[
                (own.name, show_fact(own.name, view.value(own), self.scaler))
                for own in self.form.static
            ],
            **self._decision(view),
        )

    def answer(self, code: str, query: Query) -> str:
        """What an answer, part by part, comes to."""
        view = self.view(code, query)
        answers = [query.get(f"part-{k}", WAIT) for k in range(len(all_parts(view)))]
        return _render("stay_answer.html", sentences=put_together(view, answers))

    def why(self, code: str, query: Query) -> str:
        """What speaks for the advice, similar patients, and what to measure next."""
        view, near = self.view(code, query), self.neighbours
        return _render(
            "stay_why.html",
            similar=None if isinstance(near, str) else find_similar(near, view),
            missing=near if isinstance(near, str) else "",
            measured=() if isinstance(near, str) else find_measurements(near, view),
            names=self.run.advisor.names,
            view=view,
            **_reasons(view),
        )

    def what_if(self, code: str, query: Query, body: bytes) -> str:
        """The decision with other values."""
        view = self.view(code, query)
        changes = self._changes(view, body)
        changed = view.changed(changes) if changes else view
        return _render(
            "stay_changed.html",
            changed=bool(changes),
            before="wait" if view.abstained else self.run.advisor.names[view.advised],
            same=(view.abstained, view.advised) == (changed.abstained, changed.advised),
            **self._decision(changed),
            **_reasons(changed),
        )

    def _decision(self, view: StayView) -> dict[str, object]:
        return {"view": view, "card": make_decision(view), "verdict": self.verdict, "wait": WAIT}

    def _chart(self, view: StayView, field: Field) -> tuple[str, object, object]:
        values = view.features[:, field.columns[0]].astype(np.float64)
        measured = [not field.missing(row) for row in view.features]
        normal = self.ranges.get(field.name)
        return field.name, value_chart(field.name, values, measured, view.row, normal), normal

    def _control(self, view: StayView, key: str) -> Control:
        field = self.fields[key]
        return make_control(key, field, view.value(field), self.reach[key], self.scaler)

    def _changes(self, view: StayView, body: bytes) -> dict[Field, Value]:
        """Fields that are not as they were."""
        try:
            given = parse_qs(body.decode(), max_num_fields=_MAX_FIELDS)
        except ValueError:
            raise HTTPException(422) from None
        made: dict[Field, Value] = {}
        for key, field in self.fields.items():
            if key in given:
                value = read_change(field, self._control(view, key), given[key][-1].strip())
                if value is not None:
                    made[field] = value
        return made


def make_pages(run: ServedRun, in_turn: InTurn) -> APIRouter:
    """Routes of the pages; `in_turn` does their work outside the event loop."""
    pages, router = Pages(run), APIRouter(include_in_schema=False)

    @router.get("/")
    async def overview() -> Response:
        return HTMLResponse(pages.overview)

    @router.get("/stays")
    async def stays(request: Request) -> Response:
        return HTMLResponse(await in_turn(lambda: pages.stays(request.query_params)))

    @router.get("/stays/{code}")
    async def stay(request: Request, code: str) -> Response:
        query, whole = request.query_params, "hx-request" not in request.headers
        return HTMLResponse(await in_turn(lambda: pages.stay(code, query, whole=whole)))

    @router.get("/stays/{code}/answer")
    async def answer(request: Request, code: str) -> Response:
        return HTMLResponse(await in_turn(lambda: pages.answer(code, request.query_params)))

    @router.get("/stays/{code}/why")
    async def why(request: Request, code: str) -> Response:
        return HTMLResponse(await in_turn(lambda: pages.why(code, request.query_params)))

    @router.post("/stays/{code}/what-if")
    async def what_if(request: Request, code: str) -> Response:
        body = await request.body()
        return HTMLResponse(await in_turn(lambda: pages.what_if(code, request.query_params, body)))

    @router.get("/assets/{name}")
    async def asset(name: str) -> Response:
        if name not in assets():
            raise HTTPException(404)
        content, kind = assets()[name]
        return Response(content, media_type=kind)

    return router


def _render(template: str, **context: object) -> str:
    return templates().get_template(template).render(**context)


def _reasons(view: StayView) -> dict[str, object]:
    why = explain(view)
    label = "What speaks for the advice and what against it"
    return {"why": why, "bars": signed_bars(why.bars, label) if why.bars else None}


def _whole(text: str | None, *, limit: int) -> int:
    """A whole number from a request; 0 where it is none."""
    if text is None or not (text.isascii() and text.isdecimal() and len(text) < 9):
        return 0
    return min(int(text), limit)
