"""What the tests of the cohort builder share."""

import contextlib

from etips.cohorts.build import build_cohort
from etips.cohorts.databases import extract, open_source


def built(address, profile=None, *, reading=extract, **options):
    """Open, build, close.

    A name of a profile needs nothing else; a changed profile needs its database's `Extraction` as
    `reading`.
    """
    with contextlib.closing(open_source(address, **options)) as source:
        return build_cohort(reading(source, profile))


def same(one, other):
    """Identical to the last bit."""
    assert one.table.equals(other.table)
    assert one.decisions.equals(other.decisions)
    assert one.onsets.equals(other.onsets)
    assert one.files()["funnel.json"] == other.files()["funnel.json"]
