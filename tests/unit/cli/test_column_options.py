"""Options that name columns: one for each field, a file that says the same, and which wins."""

import pytest
import typer
from typer.testing import CliRunner

from etips.cli.arguments import said_of_table, takes_columns
from etips.cli.main import refusing
from etips.data.tables.table_spec import SAID, TableSpec
from etips.errors import SettingError

EVERY = {
    "--stay": "id", "--step": "t", "--action": "a,b", "--dose": "fluid", "--bins": "4",
    "--loss": "died", "--reward": "alive", "--static": "age, sex", "--propensity": "p",
    "--group": "patient", "--eligible": "may", "--negative-control": "before",
    "--missing-loss": "weight", "--categorical": "ward", "--features": "R*", "--drop": "note",
    "--missing": "refuse", "--every": "4h", "--combine": "urine=sum,map=mean", "--n-actions": "3",
    "--actions": "no,yes", "--lag": "0", "--decimal": ",", "--dates": "dmy", "--bad": "1,2",
    "--limits": "value", "--na": "999,not done",
}  # fmt: skip


@pytest.fixture
def command():
    """A command that keeps what it was told."""
    told = []

    @takes_columns
    def tell(columns: TableSpec) -> None:
        told.append(columns)

    app = typer.Typer()
    app.command()(refusing(tell))

    def call(*arguments):
        result = CliRunner().invoke(app, [str(a) for a in arguments])
        return result, told[-1] if told else None

    return call


def test_there_is_an_option_for_every_field(command):
    names = list(SAID)
    assert {f"--{name.replace('_', '-')}" for name in names} == set(EVERY)
    result, columns = command(*(word for pair in EVERY.items() for word in pair))
    assert result.exit_code == 0, result.output
    assert set(columns.given) == set(names)
    assert columns.combine == {"urine": "sum", "map": "mean"}
    assert (columns.action, columns.bins, columns.lag) == (("a", "b"), 4, 0)
    assert (columns.bad, columns.na) == (("1", "2"), ("999", "not done"))


def test_options_go_over_the_file(command, tmp_path):
    (tmp_path / "table.toml").write_text('[data]\nstay = "id"\nloss = "died"\nlag = 0\n')
    _, columns = command("--table", tmp_path / "table.toml", "--reward", "alive", "--lag", 1)
    assert columns == TableSpec(stay="id", reward="alive", lag=1)


def test_a_slip_is_refused_as_the_option_or_the_file_that_it_is_in(command, tmp_path):
    result, _ = command("--missing", "guess")
    assert result.exit_code == 2
    assert result.stderr == "etips tell: --missing: must be carry or refuse.\n"
    result, _ = command("--table", tmp_path / "none.toml")
    assert result.exit_code == 2
    assert "none.toml: cannot be read" in result.stderr
    with pytest.raises(SettingError, match=r"^--combine: must be column=how"):
        said_of_table(None, {"combine": "urine"})
