"""Runs that the tests of the service share, and clients that may enter."""

import asyncio
from functools import cache

import httpx
import numpy as np
from small_worlds import small, training

from etips.data.schema import Schema
from etips.data.trajectories import Trajectories
from etips.learn import DirectMethod
from etips.serve.gate import Address, Gate
from etips.serve.service import make_application, make_card
from etips.serve.stays import Advisor, ServedRun, StayList

TOKEN = "a-token-of-the-tests-0123456789"
PORT = 8099
BEARER = {"Authorization": f"Bearer {TOKEN}"}
DOSES = tuple(f"fluid {row}, vasopressor {column}" for row in range(2) for column in range(3))


def ward(n_stays=80, seed=0, lag=0):
    """Stays with a category, a value that may be missing, a static one, and pairs of doses.

    A high pressure wants no vasopressor; the clinicians mostly know.
    """
    rng = np.random.default_rng(seed)
    lengths = rng.integers(2, 6, n_stays)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    n = int(offsets[-1])
    pressure, lactate = rng.normal(70, 12, n), rng.gamma(2.0, 1.0, n)
    gone = rng.random(n) < 0.2
    night = (rng.random(n) < 0.5).astype(float)
    rows = np.stack(
        [pressure, np.where(gone, np.nan, lactate), night, 1 - night, gone.astype(float)], axis=1
    )
    low = pressure < 65
    knows = rng.random(n) < 0.7
    vaso = np.where(knows, np.where(low, 2, 0), rng.integers(0, 3, n))
    fluid = rng.integers(0, 2, n)
    harm = 0.2 + 0.5 * (low & (vaso == 0)) + 0.5 * (~low & (vaso == 2))
    return Trajectories(
        sequence=rows.astype(np.float32),
        offsets=offsets,
        schema=Schema(
            sequence=("MeanBP", "Lactate", "shift=night", "shift=day", "Lactate_missing"),
            static=("age",),
            n_actions=6,
            actions=DOSES,
            lag=lag,
            categories={"shift": ("night", "day")},
            indicators=("Lactate",),
        ),
        action=(3 * fluid + vaso).astype(np.int64),
        loss=(rng.random(n) < harm).astype(float),
        static=rng.normal(60, 10, (n_stays, 1)).astype(np.float32),
        stay=np.array([f"CANARY-{seed}-{number}" for number in range(n_stays)]),
    )


@cache
def fitted(lag=0, earlier_actions=False):
    """A policy that knows when to give a vasopressor."""
    return (
        DirectMethod(**small(training=training(25, earlier_actions=earlier_actions)))
        .fit(ward(300, lag=lag))
        .policy_
    )


@cache
def desk(lag=0, earlier_actions=False, with_stays=True):
    """All that the service needs of it."""
    stays = ward(30, seed=1, lag=lag) if with_stays else None
    return make_desk(fitted(lag, earlier_actions), stays)


def make_desk(policy, stays):
    """A run without a folder."""
    advisor = Advisor(policy)
    card = make_card(advisor, {"method": "direct", "seed": 0}, "f" * 64, None)
    listed = None if stays is None else StayList(advisor, stays, b"key")
    return ServedRun(advisor, "run", card, None, listed)


@cache
def gated(own):
    """The application behind its gate."""
    return Gate(make_application(own), Address(port=PORT, token=TOKEN))


class Client:
    """Asks an application without a network."""

    def __init__(self, app, headers):
        self.app, self.headers = app, headers

    def request(self, method, path, **more):
        return asyncio.run(self._ask(method, path, more))

    async def _ask(self, method, path, more):
        transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
        own = {"base_url": f"http://127.0.0.1:{PORT}", "headers": self.headers}
        async with httpx.AsyncClient(transport=transport, **own) as asking:
            return await asking.request(method, path, **more)

    def get(self, path, **more):
        return self.request("GET", path, **more)

    def post(self, path, **more):
        return self.request("POST", path, **more)


def client(own=None, headers=None):
    """A client that brings the token, unless it is told to bring something else."""
    return Client(gated(own or desk()), BEARER if headers is None else headers)


def question(n_steps=2, **more):
    """A request that is as it should be."""
    values = {"MeanBP": 58.0, "Lactate": None, "shift": "night"}
    stay = {"static": {"age": 61.0}, "steps": [{"values": values} for _ in range(n_steps)]}
    return {"stays": [stay], **more}
