"""Whether four-hour rows fit into memory."""

import pytest

from etips.cohorts.sepsis3 import footprint
from etips.errors import ResourceError

GIB = 2**30


def test_what_would_not_fit_is_refused_before_it_is_begun(monkeypatch):
    monkeypatch.setattr(footprint, "free_memory", lambda: GIB)
    footprint.require_memory(GIB // footprint.BYTES_PER_ROW)
    with pytest.raises(ResourceError, match=r"^cohort: needs about 2\.0 GiB .* 1\.0 GiB are free"):
        footprint.require_memory(2 * GIB // footprint.BYTES_PER_ROW)


def test_a_machine_that_tells_nothing_is_trusted(monkeypatch):
    monkeypatch.setattr(footprint, "free_memory", lambda: None)
    footprint.require_memory(10**12)
