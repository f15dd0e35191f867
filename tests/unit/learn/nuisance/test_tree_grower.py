"""Trees that are ordered as arrays and grown elsewhere are those that grow here."""

import io
import subprocess
import sys

import numpy as np

from etips.learn import BoostedTrees
from etips.learn.nuisance.tree_grower import (
    Rounds,
    grow_members,
    read_orders,
    read_rounds,
    serve,
    write_orders,
    write_rounds,
)

RNG = np.random.default_rng(0)
ROWS = np.where(RNG.random((600, 4)) < 0.1, np.nan, RNG.normal(size=(600, 4)))
ACTION = np.digitize(np.nan_to_num(ROWS[:, 0]) + RNG.normal(size=600), [-0.5, 0.5])
FOLD = np.arange(600) % 3
LEARNS = FOLD[None] != np.arange(3)[:, None]


def orders(rounds=12):
    settings = BoostedTrees(rounds=rounds)
    return settings.order_classes(ROWS, ACTION, LEARNS, ~LEARNS)


def same(ours, theirs):
    assert len(ours) == len(theirs)
    for own, other in zip(ours, theirs, strict=True):
        assert own.base == other.base
        assert len(own.trees) == len(other.trees)
        for nodes, again in zip(own.trees, other.trees, strict=True):
            assert nodes.tobytes() == again.tobytes()


def test_orders_and_trees_survive_as_bytes():
    stream = io.BytesIO()
    write_orders(stream, orders())
    stream.seek(0)
    back = read_orders(stream)
    assert read_orders(stream) is None
    grown = grow_members(orders(), 1)
    assert sum(len(own.trees) for own in grown) > 30
    same(grow_members(back, 2), grown)
    stream = io.BytesIO()
    for own in (*grown, Rounds(())):
        write_rounds(stream, own)
    stream.seek(0)
    same([read_rounds(stream) for _ in range(4)], [*grown, Rounds(())])


def test_orders_are_served_one_after_the_other():
    asked, answers = io.BytesIO(), io.BytesIO()
    for rounds in (12, 3):
        write_orders(asked, orders(rounds))
    asked.seek(0)
    serve(asked, answers, 2)
    answers.seek(0)
    for rounds in (12, 3):
        same([read_rounds(answers) for _ in range(3)], grow_members(orders(rounds), 1))


def test_a_member_that_has_nothing_to_tell_apart_grows_nothing():
    alike = BoostedTrees().order_classes(ROWS, np.zeros(600, np.int64), LEARNS, ~LEARNS)
    assert [own.trees for own in grow_members(alike, 1)] == [(), (), ()]


def test_a_process_that_grows_trees_does_without_pandas_and_knows_of_it_afterwards():
    code = (
        "import sys\n"
        "from etips.learn.nuisance import tree_grower\n"
        "tree_grower._import()\n"
        "assert 'sklearn.ensemble' in sys.modules\n"
        "assert not [name for name in sys.modules if name.split('.')[0] == 'pandas']\n"
        "import pandas\n"
        "tree_grower._import()\n"
        "assert sys.modules['pandas'] is pandas\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
