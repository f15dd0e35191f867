"""The service on a port of this machine, for tests that need a network or a browser."""

import threading
import time
from contextlib import contextmanager
from dataclasses import replace

from served_runs import TOKEN, desk

from etips.serve.gate import Address, listen, make_server
from etips.serve.service import make_application


@contextmanager
def running(own=None):
    """The port that it listens on."""
    address = Address(port=0, token=TOKEN)
    with listen(address) as bound:
        port = bound.getsockname()[1]
        server = make_server(make_application(own or desk()), replace(address, port=port))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
        thread.start()
        try:
            while not server.started:
                time.sleep(0.01)
            yield port
        finally:
            server.should_exit = True
            thread.join()
