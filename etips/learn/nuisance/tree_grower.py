"""scikit-learn's part of boosted trees; also a process that does it: `python -m` this module.

The process begins to import scikit-learn at once, reads orders as arrays from its input and writes
what was grown to its output. Neither torch nor anything of ours that needs it is imported here.
"""

import io
import json
import os
import queue
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, BinaryIO, Literal

import numpy as np
from numpy.lib.format import read_array, write_array
from numpy.typing import NDArray

from etips.machine import importing, own_process

Kind = Literal["HistGradientBoostingClassifier", "HistGradientBoostingRegressor"]
_ARRAYS = ("rows", "target", "learns", "stops")


@dataclass(frozen=True, eq=False)
class Orders:
    """What to grow, of J members on the same n rows.

    Args:
        kind: What scikit-learn calls it.
        settings: Its arguments.
        rounds: Most rounds of each member; none is grown for 0.
        rows: Shape (n, d), NaN where missing.
        target: Shape (J, n).
        learns: Whom each learns from, shape (J, n).
        stops: Who says when to stop, shape (J, n).
    """

    kind: Kind
    settings: Mapping[str, float]
    rounds: Sequence[int]
    rows: NDArray[np.float64]
    target: NDArray[Any]
    learns: NDArray[np.bool_]
    stops: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Rounds:
    """What one member grew.

    Args:
        trees: Nodes of each tree, in the order in which they are added up.
        base: Where they start from; of several classes that of the first.
    """

    trees: Sequence[NDArray[Any]]
    base: float = 0.0


def grow_members(orders: Orders, n_threads: int) -> list[Rounds]:
    """Grow all members, each on one thread: the same whatever the number of threads."""
    with ThreadPoolExecutor(max(n_threads, 1)) as pool:
        return list(pool.map(lambda member: grow(orders, member), range(len(orders.rounds))))


def grow(orders: Orders, member: int) -> Rounds:
    """Grow one member; of its rounds those up to the one that held-out rows liked best."""
    if not orders.rounds[member]:
        return Rounds(())
    import sklearn.ensemble  # noqa: PLC0415  # a second that only those pay who grow trees
    from threadpoolctl import threadpool_limits  # noqa: PLC0415

    learns, stops = orders.learns[member], orders.stops[member]
    rows, target, early = orders.rows, orders.target[member], bool(stops.any())
    model = getattr(sklearn.ensemble, orders.kind)(
        **orders.settings, max_iter=orders.rounds[member], early_stopping=early
    )
    held = {"X_val": rows[stops], "y_val": target[stops]} if early else {}
    with threadpool_limits(limits=1, user_api="openmp"):
        model.fit(rows[learns], target[learns], **held)
    scores = np.asarray(model.validation_score_)
    best = int(scores.argmax()) if scores.size else model.n_iter_
    trees = [tree.nodes for one in model._predictors[:best] for tree in one]
    return Rounds(trees, float(np.ravel(model._baseline_prediction)[0]))


def write_orders(stream: BinaryIO, orders: Orders) -> None:
    """Orders as a line of JSON and arrays."""
    told = {"kind": orders.kind, "settings": dict(orders.settings), "rounds": list(orders.rounds)}
    stream.write(json.dumps(told).encode() + b"\n")
    for name in _ARRAYS:
        _send(stream, getattr(orders, name))
    stream.flush()


def read_orders(stream: BinaryIO) -> Orders | None:
    """What `write_orders` wrote; None where there is no more."""
    line = stream.readline()
    if not line:
        return None
    told = json.loads(line)
    arrays = (_receive(stream) for _ in _ARRAYS)
    return Orders(told["kind"], told["settings"], told["rounds"], *arrays)


def write_rounds(stream: BinaryIO, grown: Rounds) -> None:
    """What a member grew as a line of JSON and one array of all nodes."""
    sizes = [len(nodes) for nodes in grown.trees]
    stream.write(json.dumps({"sizes": sizes, "base": grown.base}).encode() + b"\n")
    if sizes:
        _send(stream, np.concatenate(grown.trees))
    stream.flush()


def read_rounds(stream: BinaryIO) -> Rounds:
    """What `write_rounds` wrote; an EOFError where there is nothing."""
    line = stream.readline()
    if not line:
        raise EOFError
    told = json.loads(line)
    if not told["sizes"]:
        return Rounds((), told["base"])
    nodes = _receive(stream)
    return Rounds(np.split(nodes, np.cumsum(told["sizes"])[:-1]), told["base"])


def _send(stream: BinaryIO, array: NDArray[Any]) -> None:
    """An array with its length before it: NumPy itself wants files that it can go back in."""
    packed = io.BytesIO()
    write_array(packed, np.ascontiguousarray(array), allow_pickle=False)
    stream.write(packed.tell().to_bytes(8, "little"))
    stream.write(packed.getbuffer())


def _receive(stream: BinaryIO) -> NDArray[Any]:
    """What `_send` sent; an EOFError where it ends too soon."""
    length = int.from_bytes(stream.read(8), "little")
    packed = stream.read(length)
    if not length or len(packed) < length:
        raise EOFError
    received: NDArray[Any] = read_array(io.BytesIO(packed), allow_pickle=False)
    return received


def serve(asked: BinaryIO, answers: BinaryIO, n_threads: int) -> None:
    """Grow what is asked for, in the order in which it is, until there is no more.

    Args:
        asked: Orders.
        answers: What was grown, member by member.
        n_threads: Members that grow at once.
    """
    with ThreadPoolExecutor(n_threads) as pool:
        for grown in _taken_up(asked, pool):
            write_rounds(answers, grown.result())


def _taken_up(asked: BinaryIO, pool: ThreadPoolExecutor) -> "Iterator[Future[Rounds]]":
    """Members at work; orders are read meanwhile, so that nobody waits to give some."""
    begun: queue.SimpleQueue[Future[Rounds] | None] = queue.SimpleQueue()

    def listen() -> None:
        while (orders := read_orders(asked)) is not None:
            for member in range(len(orders.rounds)):
                begun.put(pool.submit(grow, orders, member))
        begun.put(None)

    threading.Thread(target=listen, daemon=True).start()
    _import()  # before anybody has asked
    while (grown := begun.get()) is not None:
        yield grown


def _import() -> None:
    """Import scikit-learn without pandas, a fourth of it: what it reads here are arrays."""
    hides = "pandas" not in sys.modules
    if hides:
        sys.modules["pandas"] = None  # type: ignore[assignment]  # as if it were not installed
    try:
        with importing():
            import sklearn.ensemble  # noqa: F401, PLC0415
    finally:
        if hides:
            del sys.modules["pandas"]


def main() -> None:
    """Serve on the standard streams."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what some library prints is no answer
    own_process()
    serve(sys.stdin.buffer, answers, int(sys.argv[1]))


if __name__ == "__main__":
    main()
