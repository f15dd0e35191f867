"""The reporting checklist on the page."""

import re


def test_h3_the_checklist_of_tripod_ai_leads_to_sections_that_are_there(page):
    """H3: 27 rows; every link has an anchor on the page."""
    anchors = {e.attributes["id"] for e in page.all() if "id" in e.attributes}
    links = [e.attributes["href"] for e in page.all("a")]
    assert {link.removeprefix("#") for link in links} <= anchors
    rows = [row for row in page.all("tr") if re.match(r"\s*\d+\. ", row.text)]
    assert len(rows) == 27
