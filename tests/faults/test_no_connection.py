"""P4: no command opens a connection to anywhere but this machine."""

import subprocess
import sys

WATCH = """
import sys

def watch(event, details):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.sendto"):
        address = details[1] if event != "socket.getaddrinfo" else details[0]
        host = address[0] if isinstance(address, tuple) else address
        if str(host) not in ("127.0.0.1", "::1", "localhost") and not str(host).startswith("/"):
            print("connected to", host, flush=True)

sys.addaudithook(watch)
{what}
"""
COMMAND = "sys.argv = {arguments!r}\nfrom etips.cli.main import main\nmain()"
QUICK = ["--set", "hidden=4", "--set", "epochs=1", "--set", "n_folds=2"]


def watched(what, folder):
    code = WATCH.format(what=what)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=folder, timeout=300
    )
    return [line for line in done.stdout.splitlines() if line.startswith("connected to")]


def test_the_watch_sees_a_connection(tmp_path):
    reach = "import socket\nsocket.socket(type=socket.SOCK_DGRAM).connect(('192.0.2.1', 9))"
    assert watched(reach, tmp_path) == ["connected to 192.0.2.1"]


def test_no_command_connects_to_anywhere(tmp_path):
    commands = [
        ["simulate", "clinic", "--stays", "120", "--out", "data"],
        ["fit", "data", "--method", "doubly-robust", "--out", "run", *QUICK],
        ["recommend", "run", "data", "--out", "recommended.parquet"],
        ["simulate", "clinic", "--stays", "120", "--seed", "1", "--out", "held"],
        ["evaluate", "run", "held"],
        ["report", "run", "--out", "report.html"],
        ["simulate", "mimic3", "--stays", "30", "--out", "raw"],
        ["cohort", "raw", "--out", "cohort"],
    ]
    for command in commands:
        assert watched(COMMAND.format(arguments=["etips", *command]), tmp_path) == []
    assert (tmp_path / "report.html").is_file()
    assert (tmp_path / "cohort").is_dir()
