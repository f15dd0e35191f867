"""Lists of items: which rows of them a profile takes."""

from etips.cohorts.mimic.items import read_concepts, select_items

HEADER = "concept,source_table,itemid,label,unit_note,plausible_low,plausible_high,dbsource,profile"
LIST = f"""{HEADER}
vital:HR,chartevents,1,,,,250,,both
vital:HR,chartevents,2,,,,250,,paper
vital:HR,chartevents,3,,,0,,,clean
lab:Sodium,labevents,4,,,,,,both
culture,procedureevents_mv,5,,,,,,clean
antibiotic_gsn,prescriptions,000006,,,,,,both
antibiotic_name,prescriptions,cef,,,,,,clean
"""


def test_limits_are_numbers_or_none_and_codes_keep_their_zeros():
    rows = read_concepts(LIST)
    assert [(row.low, row.high) for row in rows[:3]] == [(None, 250), (None, 250), (0, None)]
    assert rows[5].item == "000006"


def test_a_profile_takes_its_own_rows_and_those_of_both():
    rows = read_concepts(LIST)
    paper, clean = (select_items(rows, lambda concept, on=on: on) for on in (False, True))
    assert (set(paper.vitals), set(clean.vitals)) == ({1, 2}, {1, 3})
    assert (paper.procedure_cultures, clean.procedure_cultures) == (frozenset(), {5})
    assert clean.antibiotics == {"000006"}
    assert clean.labs == {4: "Sodium"}
