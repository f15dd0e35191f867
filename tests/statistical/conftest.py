"""The simulated wards live in benchmarks/, which is not installed: let any pytest find it."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
