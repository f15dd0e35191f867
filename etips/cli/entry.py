"""The command from its first moment: Ctrl-C ends it without a traceback while it is imported."""

import signal

_OWN = signal.getsignal(signal.SIGINT)  # ignored, for one that a shell runs in the background
if _OWN is signal.default_int_handler:
    signal.signal(
        signal.SIGINT, signal.SIG_DFL
    )  # before the import, which takes a third of a second

from etips.cli.main import main as run_command  # noqa: E402


def main() -> None:
    """Run the command line, which says by itself that it was interrupted."""
    signal.signal(signal.SIGINT, _OWN)
    run_command()
