"""Settings and versions on the page."""

import json

from report_documents import Page, render, section_of


def test_settings_are_words_not_code(found):
    made = json.loads(json.dumps(found))
    inner = {"hidden": 64, "translations": [0.1, 0.3]}
    made["exhibits"]["settings"] = {"quick": False, "turned": [], "methods": {"etips": inner}}
    text = " ".join(Page(render(made)).root.text.split())
    assert "quick no" in text
    assert "turned none" in text
    assert "methods: etips hidden 64; translations 0.1, 0.3" in text


def test_seeds_versions_and_fingerprint_stand_on_the_page(found, page):
    text = section_of(page, "settings").text
    assert found["exhibits"]["fingerprint"] in text
    for version in found["exhibits"]["versions"].values():
        assert version in text
    assert "a decision sees its own step too (lag 0)" in text
