"""The reporting checklist."""

from etips.report.page import SECTIONS
from etips.report.tripod import ITEMS


def test_h3_every_item_of_the_guideline_is_answered_or_says_why_not():
    """H3: 27 items, none empty; every place is a section of the page."""
    assert [item.number for item in ITEMS] == list(range(1, 28))
    anchors = {"finding", "notice", *(section.name for section in SECTIONS)}
    for item in ITEMS:
        assert item.topic
        assert item.asks
        if item.where is None:
            assert item.answer.startswith("Not applicable, because ")
        else:
            assert item.where in anchors
            assert item.answer
