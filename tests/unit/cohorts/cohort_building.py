"""What the tests of the cohort builder share."""

import contextlib

from etips.cohorts.build import build_cohort
from etips.cohorts.databases import open_source
from etips.cohorts.mimic3.extraction import Mimic3Extraction
from etips.cohorts.mimic3.switches import PAPER


def built(address, profile=PAPER, **options):
    """Open, build, close."""
    with contextlib.closing(open_source(address, **options)) as source:
        return build_cohort(Mimic3Extraction(source, profile))


def same(one, other):
    """Identical to the last bit."""
    assert one.table.equals(other.table)
    assert one.decisions.equals(other.decisions)
    assert one.onsets.equals(other.onsets)
    assert one.files()["funnel.json"] == other.files()["funnel.json"]
