"""What work costs."""

import subprocess
import sys
import time

from etips.bench.costs import measured


def test_a_large_array_shows_in_the_peak_and_is_forgotten_by_the_next():
    code = (  # in a process of its own: a process that ran other tests may have kept their memory
        "import numpy as np\n"
        "from etips.bench.costs import measured\n"
        "with measured() as large:\n"
        "    block = np.ones(30_000_000)\n"  # 240 MB
        "    del block\n"
        "with measured() as small:\n"
        "    pass\n"
        "print(large.memory - small.memory)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert float(done.stdout) > 150


def test_waiting_takes_time_and_no_processor():
    with measured() as cost:
        time.sleep(0.1)
    assert cost.seconds >= 0.1
    assert cost.processor < 0.09
