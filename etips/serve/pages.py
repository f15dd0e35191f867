"""The pages: overview, stays, one stay with its decisions, and what if."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import TypeVar
from urllib.parse import parse_qs

import numpy as np
from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse
from starlette.exceptions import HTTPException

from etips.data.scale import Scaler
from etips.disclosure import shown_count
from etips.explanation.similar import Neighbourhood
from etips.serve.choices import Control, make_control, reaches, read_change
from etips.serve.decision_card import WAIT, all_parts, make_decision, make_tracks, put_together
from etips.serve.desk import Desk
from etips.serve.fields import Field, Value
from etips.serve.normal_ranges import RANGES, Range, ranges_of
from etips.serve.overview import show_overview, verdict_of
from etips.serve.patient_age import show_fact, show_name
from etips.serve.reasons import explain, find_measurements, find_neighbours, find_similar
from etips.serve.service import Turns
from etips.serve.stay_list import ORDERS, SHOWN, Order, Show, StayList
from etips.serve.stay_view import StayView
from etips.serve.templating import assets, render
from etips.serve.tracks import action_chart, signed_bars, value_chart

_A_PAGE = 40
_CHARTS = 6
_MOST_FIELDS = 4000
Query = Mapping[str, str]
K = TypeVar("K", bound=str)


class Pages:
    """What the pages show of a desk.

    Args:
        desk: The run and its data.
    """

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.verdict = verdict_of(desk.record.results)
        self.overview = show_overview(desk)
        self.neighbours: Neighbourhood | str = ""
        """The log made ready for similar decisions, or why it is not."""
        if desk.stays is not None:
            self.neighbours = find_neighbours(desk.advisor.policy, desk.stays.data)

    @property
    def scaler(self) -> Scaler | None:
        """Mean and spread of the training data."""
        return self.desk.advisor.policy.scaler

    @cached_property
    def ranges(self) -> dict[str, Range]:
        """Reference ranges of the columns that have one."""
        names = [own.name for own in self.desk.form.sequence]
        return ranges_of(names, self.scaler)

    @cached_property
    def usual(self) -> tuple[int, ...]:
        """Fields that are charted unless somebody chooses: those with a range, then the first."""
        fields = self.desk.form.sequence
        numbers = [k for k, own in enumerate(fields) if not own.levels]
        order = {name: k for k, name in enumerate(dict.fromkeys(_FIRST))}
        numbers.sort(key=lambda k: order.get(fields[k].name, len(order)))
        return tuple(numbers[:_CHARTS])

    @cached_property
    def reach(self) -> dict[str, tuple[float, float]]:
        """Where sliders begin and end."""
        stays, schema = self.listed, self.desk.form.schema
        sequence = {name: k for k, name in enumerate(schema.sequence)}
        static = {name: k for k, name in enumerate(schema.static)}
        rows = np.asarray(stays.data.sequence[:20_000], np.float32)
        found = reaches(sequence, rows, self.scaler)
        return found | reaches(static, np.asarray(stays.data.static), self.scaler)

    @property
    def listed(self) -> StayList:
        """The stays; not found where there are none."""
        if self.desk.stays is None:
            raise HTTPException(404)
        return self.desk.stays

    def view(self, code: str, query: Query) -> StayView:
        """The decision that a request is about; not found where there is no such stay."""
        stays = self.listed
        if code not in stays.place or not len(range(*stays.decisions(code).indices(2**62))):
            raise HTTPException(404)
        at = _whole(query.get("at", "0"), most=100_000)
        return StayView.of(self.desk.advisor, self.desk.form, stays, code, at)

    def charted(self, query: Query) -> tuple[int, ...]:
        """Which fields are charted."""
        fields = self.desk.form.sequence
        numbers = [_whole(own, most=len(fields)) for own in query.get("f", "").split("-") if own]
        chosen = [k for k in dict.fromkeys(numbers) if k < len(fields) and not fields[k].levels]
        return tuple(chosen[: 2 * _CHARTS]) or self.usual

    def stays(self, query: Query) -> str:
        """The list of stays."""
        order: Order = _one_of(query.get("sort"), ORDERS, "disagreement")
        show: Show = _one_of(query.get("show"), SHOWN, "all")
        wanted = query.get("code", "")[:64]
        wanted = wanted if wanted.isalnum() and wanted.isascii() else ""
        stays = self.desk.stays
        rows = [] if stays is None else stays.select(order, show, wanted)
        last = max(-(-len(rows) // _A_PAGE) - 1, 0)
        page = min(_whole(query.get("page", "0"), most=10**6), last)
        return render(
            "stays.html",
            here="stays",
            title="Stays",
            rows=rows[page * _A_PAGE : (page + 1) * _A_PAGE],
            logged=stays is not None and stays.data.logged,
            there=stays is not None,
            count=shown_count(len(rows)),
            orders=ORDERS,
            shown=SHOWN,
            order=order,
            show=show,
            code=wanted,
            page=page,
            last=last,
        )

    def stay(self, code: str, query: Query, *, whole: bool) -> str:
        """One stay at one of its decisions: the page, or the part that changes."""
        view = self.view(code, query)
        charted = self.charted(query)
        fields = self.desk.form.sequence
        context = self._decision(view) | {
            "here": "stays",
            "title": f"Stay {code}",
            "charts": [self._chart(view, fields[k]) for k in charted],
            "tracks": self._tracks(view),
            "controls": self._controls(view, charted),
            "fields": [(k, own.name) for k, own in enumerate(fields) if not own.levels],
            "charted": charted,
            "f": "-".join(map(str, charted)),
            "ranges": any(self.ranges.get(fields[k].name) for k in charted),
            "facts": [self._fact(view, own) for own in self.desk.form.static],
        }
        return render("stay.html" if whole else "stay_decision.html", **context)

    def answer(self, code: str, query: Query) -> str:
        """What somebody's answer comes to."""
        view = self.view(code, query)
        answers = [query.get(f"part-{k}", WAIT) for k in range(len(all_parts(view)))]
        return render("stay_answer.html", sentences=put_together(view, answers))

    def why(self, code: str, query: Query) -> str:
        """What speaks for the advice, who was like this, what to measure next."""
        view = self.view(code, query)
        near = self.neighbours
        found = None if isinstance(near, str) else find_similar(near, view)
        measured = () if isinstance(near, str) else find_measurements(near, view)
        return render(
            "stay_why.html",
            similar=found,
            missing=near if isinstance(near, str) else "",
            measured=measured,
            names=self.desk.advisor.names,
            view=view,
            **self._reasons(view),
        )

    def what_if(self, code: str, query: Query, body: bytes) -> str:
        """The decision with other values."""
        view = self.view(code, query)
        steps, static = self._changes(view, body)
        changed = view.changed(steps, static) if steps or static else view
        context = self._decision(changed) | self._reasons(changed)
        names = [*steps, *static]
        before = self.desk.advisor.names[view.advised]
        return render(
            "stay_changed.html",
            changed=names,
            before="wait" if view.abstained else before,
            same=(view.abstained, view.advised) == (changed.abstained, changed.advised),
            **context,
        )

    def _decision(self, view: StayView) -> dict[str, object]:
        return {"view": view, "card": make_decision(view), "verdict": self.verdict, "wait": WAIT}

    def _reasons(self, view: StayView) -> dict[str, object]:
        why = explain(view)
        label = "What speaks for the advice and what against it"
        return {"why": why, "bars": signed_bars(why.bars, label) if why.bars else None}

    def _chart(self, view: StayView, field: Field) -> tuple[str, object, Range | None]:
        rows = view.features
        values = rows[:, field.columns[0]].astype(np.float64)
        measured = [not field.missing(row) for row in rows]
        normal = self.ranges.get(field.name)
        return field.name, value_chart(field.name, values, measured, view.row, normal), normal

    def _tracks(self, view: StayView) -> list[tuple[str, object]]:
        return [
            (name, action_chart(track, view.steps, view.at, f"{name}: given and advised"))
            for name, track in make_tracks(view)
        ]

    def _controls(self, view: StayView, charted: tuple[int, ...]) -> dict[str, list[Control]]:
        """Fields to change: those that are charted first, the others folded away."""
        steps = [self._control(f"s{k}", own, view.value(own)) for k, own in self._numbered()]
        static = [
            self._control(f"t{k}", own, view.fixed(own))
            for k, own in enumerate(self.desk.form.static)
        ]
        first = [steps[k] for k in charted]
        rest = [own for k, own in enumerate(steps) if k not in charted]
        return {"first": first, "more": [*rest, *static]}

    def _fact(self, view: StayView, field: Field) -> tuple[str, Value]:
        return field.name, show_fact(field.name, view.fixed(field), self.scaler)

    def _numbered(self) -> list[tuple[int, Field]]:
        return list(enumerate(self.desk.form.sequence))

    def _control(self, key: str, field: Field, value: Value) -> Control:
        control = make_control(key, field, value, self.reach.get(field.name, (0.0, 1.0)))
        return replace(control, name=show_name(field.name, self.scaler))

    def _changes(self, view: StayView, body: bytes) -> tuple[dict[str, Value], dict[str, Value]]:
        """What somebody changed, of the steps and of the stay."""
        try:
            given = parse_qs(body.decode(), max_num_fields=_MOST_FIELDS)
        except ValueError:
            raise HTTPException(422) from None
        made: tuple[dict[str, Value], dict[str, Value]] = ({}, {})
        form = self.desk.form
        for kind, fields, read, own in (
            ("s", form.sequence, view.value, made[0]),
            ("t", form.static, view.fixed, made[1]),
        ):
            for number, field in enumerate(fields):
                told = given.get(f"{kind}{number}")
                if told is None:
                    continue
                control = self._control(f"{kind}{number}", field, read(field))
                value = read_change(field, control, told[-1].strip())
                if value is not None:
                    own[field.name] = value
        return made


def make_pages(desk: Desk, turns: Turns) -> APIRouter:
    """Routes of the pages."""
    pages, router = Pages(desk), APIRouter(include_in_schema=False)

    @router.get("/")
    async def overview() -> Response:
        return HTMLResponse(pages.overview)

    @router.get("/stays")
    async def stays(request: Request) -> Response:
        query = _query(request)
        return HTMLResponse(await turns.take(lambda: pages.stays(query)))

    @router.get("/stays/{code}")
    async def stay(request: Request, code: str) -> Response:
        query, whole = _query(request), "hx-request" not in request.headers
        return HTMLResponse(await turns.take(lambda: pages.stay(code, query, whole=whole)))

    @router.get("/stays/{code}/answer")
    async def answer(request: Request, code: str) -> Response:
        query = _query(request)
        return HTMLResponse(await turns.take(lambda: pages.answer(code, query)))

    @router.get("/stays/{code}/why")
    async def why(request: Request, code: str) -> Response:
        query = _query(request)
        return HTMLResponse(await turns.take(lambda: pages.why(code, query)))

    @router.post("/stays/{code}/what-if")
    async def what_if(request: Request, code: str) -> Response:
        query, body = _query(request), await request.body()
        return HTMLResponse(await turns.take(lambda: pages.what_if(code, query, body)))

    @router.get("/assets/{name}")
    async def asset(name: str) -> Response:
        if name not in assets():
            raise HTTPException(404)
        own = assets()[name]
        return Response(own.content, media_type=own.kind)

    return router


_FIRST = ("MeanBP", "HR", "Arterial_lactate", "SOFA", "SpO2", "Creatinine", *RANGES)


def _query(request: Request) -> Query:
    return dict(request.query_params)


def _whole(text: str, *, most: int) -> int:
    """A whole number from a request; 0 where it is none."""
    if not (text.isascii() and text.isdecimal() and len(text) < 9):
        return 0
    return min(int(text), most)


def _one_of(text: str | None, known: Mapping[K, str], usual: K) -> K:
    return next((own for own in known if own == text), usual)
