"""pyarrow without pandas, which it imports where it is installed, to ask whether a number is one.

That takes a third of a second, and a command reads files, not frames. Once pyarrow has looked and
found none it does not look again; what is handed a frame later still works.
"""

import sys

import pyarrow as pa

_PANDAS = "pandas"


class _Hidden:
    """An importer that knows of no pandas."""

    @staticmethod
    def find_spec(name: str, *_: object) -> None:
        if name == _PANDAS:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def start_arrow() -> None:
    """Let pyarrow look for pandas while there is none; leave it alone where somebody uses it."""
    if _PANDAS in sys.modules:
        return
    sys.meta_path.insert(0, _Hidden)
    try:
        pa.array([0]).to_numpy()
    finally:
        sys.meta_path.remove(_Hidden)
