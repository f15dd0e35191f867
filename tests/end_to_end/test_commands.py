"""What holds for every command: help, version, refusals, how it is called."""

import json
import subprocess
import sys

import pytest
from commands import run

import etips
from etips.cli.main import COMMANDS, main


def shell(*arguments):
    """A command in a process of its own, as `python -m etips` starts it."""
    command = [sys.executable, "-m", "etips", *(str(a) for a in arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_version_is_printed():
    assert run("--version") == f"etips {etips.__version__}\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_listed_and_has_help(command):
    assert command in run("--help")
    assert "--help" in run(command, "--help")


def test_without_arguments_the_help_is_shown(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["etips"])
    with pytest.raises(SystemExit):
        main()
    said = capsys.readouterr()
    assert (said.out + said.err).count("Usage") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["fit"],
        ["fit", "log.csv"],
        ["fit", "log.csv", "--out", "run", "--method", "magic"],
        ["fit", "log.csv", "--out", "run", "--lag", "2"],
        ["fit", "log.csv", "--out", "run", "--seed", "-1"],
        ["fit", "log.csv", "--out", "run", "--bogus", "1"],
        ["simulate", "moon", "--out", "x"],
        ["simulate", "clinic", "--out", "x", "--stays", "0"],
        ["demo", "--stays", "1"],
    ],
)
def test_a_slip_in_the_options_is_refused_in_one_line(arguments, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["etips", *arguments])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert len(said.err.splitlines()) == 1
    assert said.err.startswith("etips")
    assert list(tmp_path.iterdir()) == []


def test_a_bug_keeps_its_traceback(monkeypatch):
    def broken(*_, **__):
        raise ZeroDivisionError

    monkeypatch.setattr("etips.worlds.clinic.Clinic", broken)
    monkeypatch.setattr(sys, "argv", ["etips", "simulate", "clinic", "--out", "nowhere"])
    with pytest.raises(ZeroDivisionError):
        main()


def test_python_runs_the_package_as_the_command(tmp_path):
    done = shell("simulate", "clinic", "--stays", 5, "--out", tmp_path / "c", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)[0]["stays"] == 5
    again = shell("simulate", "clinic", "--stays", 5, "--out", tmp_path / "c")
    assert (again.returncode, again.stdout) == (2, "")
    assert again.stderr.startswith("etips simulate: ")


def test_the_installed_command_is_the_same():
    code = (  # in a process of its own, since loading it changes what Ctrl-C does
        "import sys; from importlib.metadata import entry_points\n"
        "(found,) = entry_points(group='console_scripts', name='etips')\n"
        "sys.argv = ['etips', '--version']\n"
        "found.load()()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == f"etips {etips.__version__}\n"
