"""What the tests of the cohort builder share."""

import contextlib

from etips.cohorts.mimic3.address import open_source
from etips.cohorts.mimic3.build import build_cohort
from etips.cohorts.mimic3.config import PAPER


def built(address, config=PAPER, **options):
    """Open, build, close."""
    with contextlib.closing(open_source(address, **options)) as source:
        return build_cohort(source, config)
