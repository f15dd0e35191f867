"""Sections on patients: actions, overlap, balance, subgroups; and on the record."""

import re

from report_documents import Page, changed, document, render, section_of, words

from etips.report.page import SECTIONS
from etips.report.record_sections import checklist


def test_dose_maps_are_drawn_for_a_grid_and_bars_otherwise(page):
    assert "dose class" not in page.root.text
    made = document(world="icu-sepsis", full=False)
    section = section_of(Page(render(made)), "actions")
    assert len(list(section.all("figure"))) == 3
    assert section.text.count("fluid dose class") == 3
    cells = [e for e in section.all("span", "i") if "cell" in e.attributes.get("class", "")]
    assert len(cells) == 75 + 7  # those of the legend
    assert [e for e in cells if "thin" in e.attributes["class"].split()]
    levels = ["none", "up to 50 mL (median 30 mL)", "a", "b", "over 530 mL (median 900 mL)"]
    made["exhibits"]["actions"]["grid"]["row_levels"] = levels
    text = words(made, "actions")
    assert "Class of fluid Dose 0 none 1 up to 50 mL (median 30 mL)" in text
    assert "A recommended class means: a dose within its range." in text
    assert "hardly ever given to such patients" in text
    assert "Class of vasopressor" not in text  # it is not known


def test_of_a_policy_that_draws_the_bars_show_what_it_takes(found):
    made, _ = changed(found)
    actions = made["exhibits"]["actions"]
    n = len(actions["names"])
    actions["recommended_share"] = actions["policy_share"] = [1.0, *[0.0] * (n - 1)]
    assert "draws among actions" not in words(made, "actions")
    actions["policy_share"] = [1 / n] * n
    drawn = words(made, "actions")
    assert "The policy draws among actions: shown is how often it would take each" in drawn
    assert "Policy takes it" in drawn


def test_weights_and_calibration_are_drawn_beside_plain_frequencies(found, page):
    section = section_of(page, "overlap")
    titles = [" ".join(e.text.split()) for e in section.all("figcaption")]
    pooled = "Taken as often as stated?"
    assert titles == ["Weights of the decisions", pooled, "And action by action?"]
    assert "Calibration error" in section.text
    made, _ = changed(found)
    calibration = made["exhibits"]["calibration"]
    calibration["frequency_log_loss"] = 1.234
    calibration["actions"] = [
        {"stated": 0.04, "observed": 0.5, "std_error": 0.01},
        {"stated": None, "observed": None, "std_error": None},
    ]
    assert "And action by action?" in words(made, "overlap")
    assert "plain frequencies: 1.234" in words(made, "overlap")
    calibration["actions"] = []
    assert "And action by action?" not in words(made, "overlap")


def test_what_the_data_cannot_give_is_said_with_its_reason(found):
    made, _ = changed(found)
    for name in ("calibration", "abstention", "balance"):
        made["exhibits"][name] = {"absent": "nobody knows"}
    assert "No calibration, because nobody knows." in words(made, "overlap")
    assert "If the policy speaks only" not in words(made, "overlap")
    assert "because nobody knows" in words(made, "balance")


def test_rows_of_abstention_that_look_the_same_are_one(found):
    made, _ = changed(found)
    row = {"coverage": 1.0, "risk": 0.4, "low": 0.3, "high": 0.5, "verdict": "reliable"}
    made["exhibits"]["abstention"] = [
        row | {"support": 0.0},
        row | {"support": 0.02, "risk": 0.40001},
        row | {"support": 0.05, "coverage": 0.9},
    ]
    section = section_of(Page(render(made)), "overlap")
    rows = [" ".join(r.text.split())[:13] for r in section.all("tr") if r.parent.tag == "tbody"]
    assert rows == ["at least 0.02", "at least 0.05"]


def test_balance_draws_the_largest_differences_and_counts_all(found, page):
    section = section_of(page, "balance")
    assert f"of {found['exhibits']['balance']['n_features']} features" in section.text
    assert len([e for e in section.all("div") if e.attributes.get("role") == "img"]) == 1


def test_the_prognosis_is_told_in_words_above_the_features(found):
    told = "The weighted patients had a prognosis 0.050 better than all patients"
    prognosis = {"difference": -0.05, "std_error": 0.01, "sentence": told}
    made, main = changed(found, prognosis=prognosis)
    text = words(made, "balance")
    assert "off by about 0.020" in text
    assert text.index(told) < text.index("features")
    made["exhibits"]["balance"] = {"absent": "there is no feature to compare"}
    assert told in words(made, "balance")
    made["exhibits"] = main["prognosis"] = None
    assert 'id="balance"' not in render(made)


def test_a_gain_is_drawn_in_every_subgroup_that_is_not_hidden(found, page):
    def drawn(section):
        return [e for e in section.all("div") if e.attributes.get("role") == "img"]

    rows = [row for table in found["exhibits"]["subgroups"] for row in table["rows"]]
    n_drawn = sum(row["gain"] is not None for row in rows)
    assert len(drawn(section_of(page, "subgroups"))) == n_drawn
    made, _ = changed(found)
    row = made["exhibits"]["subgroups"][0]["rows"][0]
    row.update({name: None for name in row if name != "level"})
    section = section_of(Page(render(made)), "subgroups")
    first = next(r for r in section.all("tr") if r.parent.tag == "tbody")
    assert "hidden: too few people" in first.text
    assert not drawn(first)


def test_a_table_of_one_group_repeats_the_finding_and_is_left_out(found):
    made, _ = changed(found)
    whole = made["exhibits"]["subgroups"][0]["rows"][0] | {"level": "all decisions"}
    made["exhibits"]["subgroups"] = [{"feature": "all", "rows": [whole]}]
    assert 'id="subgroups"' not in render(made)


def test_bars_of_the_flow_are_as_long_as_their_counts(found):
    made, _ = changed(found)
    n = found["exhibits"]["missingness"]["n_features"]
    assert f"No value is missing in any of the {n} features" in words(made, "flow")
    flow = made["exhibits"]["flow"]
    counts = {"all": 200, "half": 100, "the same half": 100, "hidden": None}
    flow["stages"] = [{"name": name, "count": n} for name, n in counts.items()]
    flow |= {"source": "cohort", "n_steps": 300, "n_decisions": 300}
    section = section_of(Page(render(made)), "flow")
    bars = [e.attributes["style"] for e in section.all("span") if e.attributes["class"] == "bar"]
    assert bars == [f"width:{width:.1f}%" for width in (100, 50, 0, 0)]
    assert "From all stays of the source" in section.text
    rows = [" ".join(row.text.split()) for row in section.all("li")]
    assert rows[1] == "half; the same half 100"
    assert rows[3] == "steps in these stays; decisions evaluated 300"


def test_settings_are_words(found):
    made, _ = changed(found)
    inner = {"hidden": 64, "translations": [0.1, 0.3]}
    made["exhibits"]["settings"] = {"quick": False, "turned": [], "methods": {"etips": inner}}
    text = words(made, "settings")
    assert "quick no" in text
    assert "turned none" in text
    assert "methods: etips hidden 64; translations 0.1, 0.3" in text
    assert "a decision sees its own step too (lag 0)" in text


def test_h3_the_checklist_of_tripod_ai_leads_to_sections_that_are_there(page):
    """H3: 27 items, none empty; every place is a section, every link has an anchor on the page."""
    ids = {e.attributes["id"] for e in page.all() if "id" in e.attributes}
    links = [e.attributes["href"] for e in page.all("a")]
    assert {link.removeprefix("#") for link in links} <= ids
    rows = [row for row in page.all("tr") if re.match(r"\s*\d+\. ", row.text)]
    assert len(rows) == 27
    assert [item.number for item in checklist()] == list(range(1, 28))
    anchors = {"finding", "notice", *(section.name for section in SECTIONS)}
    for item in checklist():
        assert item.topic
        assert item.asks
        if item.where is None:
            assert item.answer.startswith("Not applicable, because ")
        else:
            assert item.where in anchors
            assert item.answer
