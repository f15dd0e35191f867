"""Rules in SQL: what they may say, and what they cannot reach."""

import random

import numpy as np
import pyarrow as pa
import pytest

import etips
from etips.errors import EtipsError, SettingError
from etips.policies import sql_rules

SECRET = "Xanthippe"


@pytest.fixture
def data():
    n = 40
    log = pa.table(
        {
            "stay": range(n),
            "t": [0] * n,
            "dose": [i % 2 for i in range(n)],
            "loss": [float(i % 3 == 0) for i in range(n)],
            "map": [float(50 + i) for i in range(n)],
            "Heart rate": [None if i == 3 else 100.0 - i for i in range(n)],
            "ward": [SECRET if i == 7 else "icu" for i in range(n)],
        }
    )
    roles = {"stay": "stay", "step": "t", "action": "dose", "loss": "loss", "missing": "carry"}
    names = ("none", "vasopressor")
    return etips.read_table(log, **roles, categorical=["ward"], actions=names, lag=0)


def ask(data, expression):
    return etips.SqlRule("r", expression).deployed(data)


def refusal(data, expression):
    with pytest.raises(EtipsError) as refused:
        ask(data, expression)
    line = str(refused.value)
    assert "\n" not in line
    assert SECRET not in line
    return line


def test_a_case_expression_is_a_policy_that_does_what_the_same_python_does(data):
    rule = etips.SqlRule("low", "case when map < 65 then 'vasopressor' else 'none' end")
    python = etips.Rule(lambda s: "vasopressor" if s["map"] < 65 else "none")
    assert rule.predict(data).sum() == 15
    assert np.array_equal(rule.predict(data), python.predict(data))


@pytest.mark.parametrize(
    "expression",
    [
        "MAP < 65",
        "case when map < 65 then 1 else 0 end",
        "(map < 65)::int -- as a number",
        "if(map between 0 and 64.5, 'vasopressor', 'none')",
        "case when map < 65 then 1.0::decimal(4, 2) else 0 end",
    ],
)
def test_numbers_and_truth_are_answers_too(data, expression):
    assert ask(data, expression).probabilities.argmax(axis=1).sum() == 15


def test_null_abstains_and_an_unknown_value_goes_to_else(data):
    assert ask(data, "null").abstained.all()
    done = ask(data, 'case when "heart rate" > 0 then 1 end')
    assert np.flatnonzero(done.abstained).tolist() == [3]
    done = ask(data, 'case when "Heart rate" > 0 then 1 else 0 end')
    assert not done.abstained.any()
    assert done.probabilities[3].tolist() == [1.0, 0.0]


def test_a_constant_is_a_rule(data):
    assert (ask(data, "'vasopressor'").probabilities[:, 1] == 1).all()


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        ("mpa < 65", "column mpa: is not among what a decision sees. There is map."),
        ('case when map < 65 then "none" end', "Text stands in single quotes: 'none'."),
        ("t.map < 3", "column t.map"),
        ("'vasopresor'", "Did you mean 'vasopressor'?"),
        ("max(map)", "functions of one row: max is none"),
        ("count(*)", "functions of one row: count is none"),
        ("avg(map) over ()", "window is not for rules"),
        ("(select 1)", "subquery is not for rules"),
        ("columns('m.*')", "star is not for rules"),
        ("$1", "parameter is not for rules"),
        ("random() < 0.5", "functions of one row: random is none"),
        ("now() > date '2020-01-01'", "functions of one row: now is none"),
        ("read_text('/etc/passwd')", "functions of one row: read_text is none"),
        ("current_setting('memory_limit')", "functions of one row"),
        ("case when map <", "must be one SQL expression"),
        ("1) from decisions where (true", "must be one SQL expression"),
        ("1), (2", "must be one SQL expression"),
        ("1; drop table decisions", "must be one SQL expression"),
        ("ward", "40 of 40 rows fail"),
        ("cast(ward as int)", "40 of 40 rows fail"),
        ("case when ward = 'icu' then 1 else cast(ward as int) end", "1 of 40 rows fail"),
        ("[map]", "40 of 40 rows fail"),
        ("date_part('year', map)", "does not fit the columns"),
    ],
)
def test_what_is_refused_and_how(data, expression, told):
    assert told in refusal(data, expression)


def test_the_database_reaches_no_file_no_network_no_extension_and_stays_so(tmp_path):
    place = tmp_path / "file.csv"
    place.write_text("a\n1\n")
    with sql_rules._closed() as connection:
        for query in (
            f"SELECT * FROM read_csv('{place}')",
            f"COPY (SELECT 1) TO '{tmp_path}/out.csv'",
            "INSTALL httpfs",
            f"ATTACH '{tmp_path}/x.db'",
            "SET enable_external_access = true",
            "SET memory_limit = '100GB'",
        ):
            with pytest.raises(Exception, match=r"(?i)permission|disabled|locked|denied"):
                connection.execute(query)


def test_time_is_limited(monkeypatch):
    monkeypatch.setattr(sql_rules, "MOST_SECONDS", 0.02)
    n = 100_000
    data = etips.from_arrays(np.arange(n)[:, None], action=np.arange(n) % 2, loss=np.zeros(n))
    with pytest.raises(EtipsError, match=r"rule r: must take less than 0\.02 s"):
        ask(data, "case when md5(repeat('a', 5000 + x0::int % 7)) = 'b' then 1 else 0 end")


def test_a_name_is_needed():
    with pytest.raises(SettingError, match="must have a name"):
        etips.SqlRule(" ", "1")
    with pytest.raises(SettingError, match="must be an expression"):
        etips.SqlRule("r", " ")


def test_a_rule_can_be_held_against_a_schema_before_anybody_is_looked_at(data):
    etips.SqlRule("r", "map < 65").check(data.schema)
    with pytest.raises(EtipsError, match="column mpa"):
        etips.SqlRule("r", "mpa < 65").check(data.schema)


WORDS = [
    "case",
    "when",
    "then",
    "else",
    "end",
    "map",
    "<",
    "=",
    "65",
    "'icu'",
    "ward",
    "(",
    ")",
    "null",
    "and",
    "not",
    "between",
    "cast",
    "as",
    "int",
    "::",
    "||",
    ",",
    "[",
    "]",
    "'a",
    '"',
    ";",
    "--",
    "/*",
    "select",
    "from",
    "decisions",
    "x",
    "->",
    "$1",
    "?",
    "1e999",
    "now()",
    "abs(",
    "é",
    "exists",
    "over",
    "collate",
    "is",
    "error('x')",
    "unnest([1])",
    "map[1]",
    "t.*",
    "row(1)",
    "lambda",
]


def test_whatever_is_written_is_an_answer_or_a_refusal_of_one_line(data):
    generator = random.Random(0)
    told = []
    for _ in range(60):
        text = " ".join(generator.choice(WORDS) for _ in range(generator.randint(1, 8)))
        try:
            ask(data, text)
        except EtipsError as error:
            told.append(str(error))
    assert len(told) > 30
    assert not any("\n" in line or SECRET in line for line in told)
