"""Actions on the page."""

from report_documents import Page, document, render, section_of


def test_dose_maps_are_drawn_for_a_grid_and_bars_otherwise(page):
    assert "dose class" not in page.root.text
    grid = Page(render(document(world="icu-sepsis", full=False)))
    section = section_of(grid, "actions")
    assert len(list(section.all("figure"))) == 3
    assert section.text.count("fluid dose class") == 3
    cells = [e for e in section.all("rect") if e.attributes.get("class") == "cell"]
    assert len(cells) == 75
    assert [e for e in section.all("rect") if e.attributes.get("fill") == "url(#thin)"]
