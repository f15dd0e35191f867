"""A graph of ONNX operations while it is written: every call adds one and gives its result's name.

onnx is optional, so it is imported where a graph is begun.
"""

from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from etips.errors import SettingError

OPSET, OPSET_ML = 18, 3
"""Versions of the operations; runtimes of 2023 and later know them."""

IR_VERSION = 9


def require_onnx() -> ModuleType:
    """The package, or a line that says how to install it."""
    try:
        import onnx  # noqa: PLC0415  # optional
    except ImportError:
        fix = "Install it with: pip install 'etips[onnx]'."
        raise SettingError("export", "needs onnx", fix=fix) from None
    return onnx


class Graph:
    """Operations in order; names are made up."""

    def __init__(self) -> None:
        self.onnx = require_onnx()
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, values: NDArray[Any] | np.generic) -> str:
        """Numbers that belong to the graph."""
        name = f"c{len(self.constants)}"
        array = np.asarray(values)
        self.constants.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    def add(self, kind: str, *inputs: str, **attributes: Any) -> str:  # noqa: ANN401  # onnx's own
        """One operation with one result."""
        return self.add_many(kind, *inputs, n_outputs=1, **attributes)[0]

    def add_many(
        self,
        kind: str,
        *inputs: str,
        n_outputs: int,
        domain: str = "",
        **attributes: Any,  # noqa: ANN401
    ) -> list[str]:
        """One operation with several results."""
        names = [f"{kind.lower()}{len(self.nodes)}_{k}" for k in range(n_outputs)]
        self.nodes.append(
            self.onnx.helper.make_node(kind, list(inputs), names, domain=domain, **attributes)
        )
        return names

    def cast(self, value: str, kind: str) -> str:
        """The same numbers as FLOAT, DOUBLE, INT64 or BOOL."""
        return self.add("Cast", value, to=getattr(self.onnx.TensorProto, kind))

    def rename(self, value: str, name: str) -> None:
        """Call a result by the name that users see."""
        self.nodes.append(self.onnx.helper.make_node("Identity", [value], [name]))
