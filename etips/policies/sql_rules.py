"""Rules written as an expression of SQL, which DuckDB works out and nothing else can come in by."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from threading import Timer
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from etips.data.intake.last_rows import last_rows, visible_columns
from etips.data.schema import Schema
from etips.data.trajectories import Trajectories
from etips.errors import DataError, EtipsError, SettingError
from etips.policies.written_rules import WrittenRule, unknown_column

if TYPE_CHECKING:
    import pyarrow as pa
    from duckdb import DuckDBPyConnection as Connection

MOST_SECONDS = 120.0
MOST_MEMORY = "2GB"
MOST_SINGLES = 2_000  # decisions that are tried one by one, to say where a rule fails
LONGEST = 100_000  # characters of an expression
_ROW = "row of the decision"  # no column of a table that DuckDB is given is called so
_PARTS = {
    *("CASE", "COMPARISON", "CONJUNCTION", "CONSTANT", "BETWEEN"),
    *("COLUMN_REF", "FUNCTION", "OPERATOR", "CAST", "TYPE"),
}
"""What an expression of one row is made of; not subqueries, windows, stars or parameters."""

_MACROS = {"if", "ifnull", "nullif"}
_CLOSED = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",
    "memory_limit": MOST_MEMORY,
    "temp_directory": "",
    "threads": "1",
}
"""No file, no network, no extension, no variable of ours; some memory."""


@dataclass(frozen=True, eq=False)
class SqlRule(WrittenRule):
    """A rule as an SQL expression over the columns of the table, mostly `case when ... end`.

    It gives the name or the number of an action, true or false where there are two, or null to
    leave it to the clinicians. A comparison with what is not known is neither true nor false, so it
    goes to `else`.

    Args:
        name: What results call it.
        expression: Of one row, the last that a decision sees.
    """

    name: str
    expression: str

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise SettingError("rule", "must have a name: NAME=EXPRESSION")
        if not self.expression.strip() or len(self.expression) > LONGEST:
            raise SettingError(self._where, f"must be an expression of 1 to {LONGEST} characters")

    @property
    def text(self) -> str:
        """What it says, for the record."""
        return " ".join(self.expression.split())

    def ask(self, data: Trajectories) -> ArrayLike:
        """Its answer to every decision, in its own words."""
        import duckdb  # noqa: PLC0415

        n = data.n_decisions
        with _closed() as connection:
            asked = self._asked(connection, data.schema)
            rows = last_rows(data, asked.values())
            table = rows.rename_columns(list(asked))
            try:  # without a row first: what does not fit the columns' kinds may be quoted
                self._run(connection, table.slice(0, 0), 0)
            except duckdb.Error as error:
                first = str(error).partition("\n")[0].partition("LINE 1")[0].strip()
                words = re.sub(r"\s+", " ", first.partition("Candidate")[0])[:200]
                raise SettingError(self._where, f"does not fit the columns: {words}") from None
            timer = Timer(MOST_SECONDS, connection.interrupt)
            timer.start()
            try:
                return self._run(connection, table, n)
            except duckdb.InterruptException:
                rule = f"must take less than {MOST_SECONDS:g} s"
                raise SettingError(self._where, rule) from None
            except duckdb.OutOfMemoryException:
                raise SettingError(self._where, f"must take less than {MOST_MEMORY}") from None
            except duckdb.Error as error:  # its message may hold a cell
                raise self._fails(connection, table, n, error) from None
            finally:
                timer.cancel()

    def check(self, schema: Schema) -> None:
        """Refuse what cannot be asked of such data, before any of it is looked at."""
        with _closed() as connection:
            self._asked(connection, schema)

    def _asked(self, connection: "Connection", schema: Schema) -> dict[str, str]:
        """Columns of the data that the expression names, by what it calls them."""
        known, asked = visible_columns(schema), dict[str, str]()
        allowed = scalar_functions()
        for part in _parts(self._parse(connection)):
            kind = part["class"]
            if kind not in _PARTS:
                rule = f"must look at one row: {str(kind).lower()} is not for rules"
                raise SettingError(self._where, rule)
            if kind == "FUNCTION" and (part["function_name"] not in allowed or part.get("schema")):
                function = str(part["function_name"]).replace("count_star", "count")
                rule = f"must use functions of one row: {function} is none"
                raise SettingError(self._where, rule)
            if kind == "COLUMN_REF":
                names = part["column_names"]
                assert isinstance(names, list)
                asked[".".join(names)] = self._find(names, known, schema)
        return asked

    def _find(self, parts: list[str], known: tuple[str, ...], schema: Schema) -> str:
        """The column that an expression means, whatever its case."""
        name = ".".join(parts)
        own = [column for column in known if column.lower() == name.lower()]
        if len(parts) > 1:
            fix = f'Write "{name}" with its quotes.' if own else ""
            raise unknown_column(self._where, name, known, fix=fix)
        if not own:
            fix = f"Text stands in single quotes: '{name}'." if name in schema.actions else ""
            raise unknown_column(self._where, name, known, fix=fix)
        if len(own) > 1 and name not in own:
            rule = f"is spelt in {len(own)} ways: {', '.join(own)}"
            raise DataError(f"{self._where}, column {name}", rule, fix="Write it as it stands.")
        return name if name in own else own[0]

    def _parse(self, connection: "Connection") -> object:
        """The tree of the expression; refused unless it is one expression and no more."""
        rule = "must be one SQL expression, such as case when map < 65 then 'a' else 'b' end"
        tree = _serialized(connection, f"SELECT (\n{self.expression}\n)")
        if tree.get("error"):
            near = re.search(r'near "([^"]*)"', str(tree.get("error_message")))
            place = f" (near {near.group(1)})" if near and near.group(1).strip(")") else ""
            raise SettingError(self._where, f"{rule}{place}")
        node, plain = _node(tree), _node(_serialized(connection, "SELECT (1)"))
        own, _ = node.pop("select_list"), plain.pop("select_list")
        if node != plain or not isinstance(own, list) or len(own) != 1:
            raise SettingError(self._where, rule)
        return own

    def _fails(
        self, connection: "Connection", table: "pa.Table", n: int, error: Exception
    ) -> EtipsError:
        """The refusal, with the decisions at which it fails where they can be told one by one."""
        import duckdb  # noqa: PLC0415

        rule = f"must not fail ({type(error).__name__.removesuffix('Exception')})"
        fix = "try_cast gives null where cast would fail."
        failing = []
        for row in range(n if n <= MOST_SINGLES else 0):
            try:
                self._run(connection, table.slice(row, 1), 1)
            except duckdb.Error:
                failing.append(row)
        if not failing:
            return DataError(self._where, f"{rule} at any decision", fix=fix)
        return DataError(self._where, rule, rows=failing, total=n, fix=fix)

    def _run(
        self, connection: "Connection", table: "pa.Table", n: int
    ) -> "np.ndarray[tuple[int], np.dtype[np.object_]]":
        """The answers of some rows, in their order."""
        import pyarrow as pa  # noqa: PLC0415

        connection.register("decisions", table.append_column(_ROW, pa.array(np.arange(n))))
        query = f'SELECT (\n{self.expression}\n) FROM decisions ORDER BY "{_ROW}"'  # noqa: S608
        cells = connection.execute(query).fetchall()
        connection.unregister("decisions")
        answers = np.empty(len(cells), object)
        answers[:] = [_plain(value) for (value,) in cells]
        return answers


@contextmanager
def _closed() -> "Iterator[Connection]":
    """A database in memory that can reach nothing, and whose settings nobody can change."""
    import duckdb  # noqa: PLC0415  # slow to import

    connection = duckdb.connect(":memory:", config={**_CLOSED})
    try:
        connection.execute("SET lock_configuration = true")
        yield connection
    finally:
        connection.close()


@cache
def scalar_functions() -> frozenset[str]:
    """Functions of one row that give the same whenever they are asked."""
    with _closed() as connection:
        rows = connection.execute(
            "SELECT DISTINCT function_name FROM duckdb_functions() "
            "WHERE function_type = 'scalar' AND stability = 'CONSISTENT'"
        ).fetchall()
    return frozenset(name for (name,) in rows) | _MACROS


def _serialized(connection: "Connection", query: str) -> dict[str, object]:
    import duckdb  # noqa: PLC0415

    try:
        ((text,),) = connection.execute("SELECT json_serialize_sql(?)", [query]).fetchall()
    except duckdb.Error as error:
        return {"error": True, "error_message": str(error)}
    tree: dict[str, object] = json.loads(text)
    return tree


def _node(tree: dict[str, object]) -> dict[str, object]:
    """The query of a single statement; nothing where there are several."""
    statements = tree.get("statements")
    if not isinstance(statements, list) or len(statements) != 1:
        return {"select_list": None}
    node = dict(statements[0]["node"])
    node.setdefault("select_list", None)
    return node


def _parts(tree: object) -> Iterator[dict[str, object]]:
    """Every expression within an expression, itself too."""
    if isinstance(tree, dict):
        if "class" in tree:
            yield tree
        for inner in tree.values():
            yield from _parts(inner)
    elif isinstance(tree, list):
        for inner in tree:
            yield from _parts(inner)


def _plain(value: object) -> object:
    """Decimals and the like as plain numbers; what is no answer stays what it is."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    try:
        return float(value)  # type: ignore[arg-type]  # a Decimal
    except (TypeError, ValueError):
        return value
