"""The service on a port of this machine, for tests that need a network or a browser."""

import threading
import time
from contextlib import contextmanager

from served_runs import TOKEN, desk

from etips.serve.application import make_application
from etips.serve.launch import Address, listen, make_server


@contextmanager
def running(own=None):
    """The port that it listens on."""
    address = Address(port=0, token=TOKEN)
    with listen(address) as bound:
        port = bound.getsockname()[1]
        server = make_server(make_application(own or desk()), address, port)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
        thread.start()
        try:
            while not server.started:
                time.sleep(0.01)
            yield port
        finally:
            server.should_exit = True
            thread.join()
