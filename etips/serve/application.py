"""Pages and JSON of a desk as one application."""

from fastapi import FastAPI

from etips.serve.desk import Desk
from etips.serve.pages import make_pages
from etips.serve.service import Turns, make_service


def make_application(desk: Desk) -> FastAPI:
    """The application; `etips.serve.gate.Gate` stands before it."""
    turns = Turns()
    app = make_service(desk.advisor, desk.form, desk.card, turns)
    app.include_router(make_pages(desk, turns))
    return app
