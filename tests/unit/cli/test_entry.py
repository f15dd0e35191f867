"""The command from its first moment."""

import signal
import subprocess
import sys

import pytest

INTERRUPTED = """
import os, signal, sys
{before}
class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == "typer":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupt())
sys.argv = ["etips", "--version"]
from etips.cli.entry import main
main()
"""


def run(before=""):
    code = INTERRUPTED.format(before=before)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)


def test_ctrl_c_while_it_is_imported_ends_it_without_a_word():
    done = run()
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


def test_one_that_does_not_listen_to_ctrl_c_goes_on():
    done = run("signal.signal(signal.SIGINT, signal.SIG_IGN)")
    assert done.returncode == 0
    assert done.stdout.startswith("etips ")


@pytest.mark.parametrize("handler", ["default_int_handler", "SIG_IGN"])
def test_a_command_hears_ctrl_c_as_it_would_have_before(handler):
    code = (
        f"import signal; signal.signal(signal.SIGINT, signal.{handler})\n"
        "from etips.cli import entry\n"
        f"entry.run_command = lambda: print(signal.getsignal(signal.SIGINT) is signal.{handler})\n"
        "entry.main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "True\n"
