"""A graph of ONNX operations while it is written: every call adds one and gives its result's name.

onnx is optional, so it is imported where a graph is begun.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from etips.errors import SettingError

OPSET, OPSET_ML = 18, 3
"""Versions of the operations; runtimes of 2023 and later know them."""

IR_VERSION = 9

Value = str | NDArray[Any] | np.generic
"""A result by its name, or numbers that belong to the graph."""


def ints(*values: int) -> NDArray[np.int64]:
    """Whole numbers as ONNX takes them: axes, shapes, places."""
    return np.array(values, np.int64)


class Graph:
    """Operations in order; names are made up.

    Args:
        prefix: Of the names; a graph within another needs one of its own.
    """

    def __init__(self, prefix: str = "") -> None:
        try:
            import onnx  # noqa: PLC0415  # optional
        except ImportError:
            fix = "Install it with: pip install 'etips[onnx]'."
            raise SettingError("export", "needs onnx", fix=fix) from None
        self.onnx: Any = onnx
        self.prefix = prefix
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def add(self, kind: str, *inputs: Value, **attributes: Any) -> str:  # noqa: ANN401  # onnx's own
        """One operation with one result."""
        return self.add_many(kind, *inputs, n_outputs=1, **attributes)[0]

    def add_many(
        self,
        kind: str,
        *inputs: Value,
        n_outputs: int,
        domain: str = "",
        **attributes: Any,  # noqa: ANN401
    ) -> list[str]:
        """One operation with several results."""
        taken = [own if isinstance(own, str) else self._constant(own) for own in inputs]
        names = [f"{self.prefix}{kind.lower()}{len(self.nodes)}_{k}" for k in range(n_outputs)]
        self.nodes.append(
            self.onnx.helper.make_node(kind, taken, names, domain=domain, **attributes)
        )
        return names

    def _constant(self, values: NDArray[Any] | np.generic) -> str:
        name = f"{self.prefix}c{len(self.constants)}"
        array = np.ascontiguousarray(values).reshape(np.shape(values))
        self.constants.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    def cast(self, value: str, kind: str) -> str:
        """The same numbers as FLOAT, DOUBLE, INT64 or BOOL."""
        return self.add("Cast", value, to=getattr(self.onnx.TensorProto, kind))

    def rename(self, value: str, name: str) -> None:
        """Call a result by the name that users see."""
        self.nodes.append(self.onnx.helper.make_node("Identity", [value], [name]))

    def mean(self, parts: list[str]) -> str:
        """The mean of several results of the same shape."""
        return parts[0] if len(parts) == 1 else self.add("Mean", *parts)
