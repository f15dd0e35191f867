"""Fingerprints: equal for equal work, different for any other."""

import functools
import subprocess
import sys
from dataclasses import replace
from enum import Enum
from operator import itemgetter

import numpy as np
import pytest
import torch
from torch import nn

from etips.errors import SettingError
from etips.files.fingerprint import _feed, fingerprint
from etips.learn.training.settings import Settings
from etips.models.encoders.gru import GRU
from etips.models.encoders.lstm import LSTM
from etips.models.encoders.module import ModuleEncoder
from etips.worlds.clinic import Clinic


class Model:
    """A classifier as others write them: settings public, what it learned ends in an underscore."""

    def __init__(self, depth=3, seed=None):
        self.depth, self.seed = depth, seed

    def fit(self):
        self.coef_ = np.random.default_rng(0).normal(size=3)
        self._cache = object()
        return self


class Colour(Enum):
    RED = 1
    BLUE = 2


def double(x):
    return 2 * x


def treble(x):
    return 3 + x


def linear(seed, width=2):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.Linear(2, width)


DATA = Clinic().log(20, seed=0)

DISTINCT = [
    None,
    0,
    1,
    1.0,
    True,
    "1",
    b"1",
    (1,),
    (1, 1),
    ((1,), 1),
    {"a": 1},
    {"b": 1},
    {"a": {"b": None}},
    {"aitems1b": None},
    {1},
    np.zeros(3),
    np.zeros((3, 1)),
    np.zeros(3, np.float32),
    np.array([0.0, 0.0, np.nan]),
    np.array(["a"]),
    np.array(["a", None], object),
    torch.zeros(3),
    torch.zeros(3, dtype=torch.bfloat16),
    torch.tensor(0.0),
    DATA,
    DATA.with_lag(1),
    DATA.subset(slice(0, 19)),
    replace(DATA, loss=1 - DATA.loss),
    Settings(),
    Settings(dropout=0.1),
    GRU(8),
    GRU(9),
    LSTM(8),
    nn.Linear,
    Model,
    Model(),
    Model(depth=4),
    Model(seed=Colour.RED),
    Model(seed=Colour.BLUE),
    double,
    treble,
    lambda x: x + 1,
    lambda x: x - 1,
    lambda x: x + 2,
    lambda x: x.real,
    lambda x: x.imag,
    functools.partial(double, 1),
    functools.partial(double, 2),
    np.exp,
    np.log,
    len,
    linear(0),
    linear(1),
    linear(0, width=3),
    nn.Sequential(nn.Tanh()),
    nn.Sequential(nn.ReLU()),
    ModuleEncoder(nn.Linear),
    Model().fit,
    Model(depth=4).fit,
    itemgetter(1),
    torch.float32,
]


def test_different_things_have_different_fingerprints():
    found = [fingerprint(thing=thing) for thing in DISTINCT]
    assert len(set(found)) == len(DISTINCT)
    assert fingerprint(a=1) != fingerprint(b=1)
    assert fingerprint(a="b", c="d") != fingerprint(a="bc", d="")


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ([1, 2], (1, 2)),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({0, 8}, {8, 0}),  # which iterate in different orders
        (np.array(["".join("xy")], object), np.array(["".join("xy")], object)),
        (np.float64(0.5), 0.5),
        (np.int32(3), 3),
        (np.zeros((4, 2)), np.zeros((2, 4)).T),
        (Model(), Model().fit()),
        (DATA, Clinic().log(20, seed=0)),
        (linear(0), linear(0)),
    ],
)
def test_the_same_thing_made_twice_has_one_fingerprint(left, right):
    assert fingerprint(thing=left) == fingerprint(thing=right)


def test_an_encoder_that_has_been_used_keeps_its_fingerprint():
    encoder = ModuleEncoder(linear(0))
    before = fingerprint(encoder=encoder)
    encoder.start(2, [0])
    assert fingerprint(encoder=encoder) == before


def test_another_process_finds_the_same():
    script = """
from etips.files.fingerprint import _feed, fingerprint
from etips.learn.training.settings import Settings
from etips.worlds.clinic import Clinic
print(fingerprint(data=Clinic().log(20, seed=0), settings=Settings(), names={"a", "b", "c"}))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    here = fingerprint(data=DATA, settings=Settings(), names={"a", "b", "c"})
    assert done.stdout.strip() == here


def test_what_cannot_be_told_apart_is_refused():
    class Slots:
        __slots__ = ("x",)

    with pytest.raises(SettingError, match=r"^Slots: cannot be told from another of its kind"):
        fingerprint(thing=Slots())
    with pytest.raises(SettingError, match=r"^Generator: cannot be told"):
        fingerprint(thing=Model(seed=np.random.default_rng(0)))


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6.0).reshape(2, 3),
        np.zeros((3, 0)),
        np.array(2.5),
        np.array(["a", "bcd"]),
        np.array([1, 2], ">i4"),
        np.array(["2020-01-01"], "datetime64[D]"),
        np.array([True, False]),
    ],
    ids=str,
)
def test_an_array_counts_by_its_bytes_wherever_they_lie(array):
    told = []
    _feed(told.append, array)
    assert bytes(told[-1]) == array.tobytes()
    spread = np.empty((2, *array.shape), array.dtype)
    spread[:] = array
    assert fingerprint(a=np.moveaxis(spread, 0, -1)[..., 0]) == fingerprint(a=array)
