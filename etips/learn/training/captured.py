"""Work on a GPU that is written down once and replayed, so that launching it costs next to nothing.

A step of a bundle is a thousand small kernels; asking for them one by one takes longer than doing
them. What is captured reads and writes tensors that stay where they are: new data are copied into
these tensors, then the graph is replayed.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from functools import cache

import torch
from torch import Tensor

_LOG = logging.getLogger(__name__)
_CAPTURE = threading.Lock()
"""One capture at a time: it waits for the whole device, which another one's capture forbids."""


@cache
def _stream() -> torch.cuda.Stream:
    """Where everything is captured. Nobody else may be on it: their work would be captured too.

    Torch hands out its few streams in turns, so a new one may well be in use. This one is of the
    usual priority; those of learners that share a GPU are of the higher one, and never the same.
    """
    return torch.cuda.Stream()  # type: ignore[no-untyped-call]


class Replay:
    """Repeats work of a few shapes. Work that cannot be captured is done as it is, with a warning.

    Args:
        work: Does everything for one shape; reads and writes only tensors that stay in place.
        changed: The tensors it changes, all of them: warming up must leave no trace.
    """

    def __init__(self, work: Callable[[int], None], changed: Sequence[Tensor]) -> None:
        self._work = work
        self._changed = list(changed)
        self._graphs: dict[int, torch.cuda.CUDAGraph] = {}
        self._first: torch.cuda.CUDAGraph | None = None
        self._capturing = True

    def __call__(self, shape: int) -> None:
        """Do the work for this shape."""
        if self._capturing and shape not in self._graphs:
            with _CAPTURE:
                self._capture(shape)
        if shape in self._graphs:
            self._graphs[shape].replay()
        else:
            self._work(shape)

    def _capture(self, shape: int) -> None:
        before = [value.clone() for value in self._changed]
        try:
            self._graphs[shape] = self._graph(shape)
        except RuntimeError as error:
            self._capturing = False
            _LOG.warning("The training step cannot be captured, it will run slower: %s", error)
        torch.cuda.synchronize()
        for value, old in zip(self._changed, before, strict=True):
            value.copy_(old)

    def _graph(self, shape: int) -> torch.cuda.CUDAGraph:
        side = _stream()
        if self._first is None:  # libraries choose their kernels before the capture
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                self._work(shape)
            torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        # One pool of memory for all shapes, since only one of them runs at a time. Other threads
        # may ask for memory meanwhile.
        pool = None if self._first is None else self._first.pool()
        with torch.cuda.graph(graph, pool=pool, stream=side, capture_error_mode="thread_local"):
            self._work(shape)
        self._first = self._first or graph
        return graph
