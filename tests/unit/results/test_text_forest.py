"""A forest in letters."""

from etips.results.text_forest import Bar, draw_bar, draw_bars, round_up


def test_the_point_stands_where_the_number_is_and_zero_in_the_middle():
    line = draw_bar(Bar("a", -0.5, -0.8, -0.2), 1.0)
    assert len(line) == 23
    assert line[11] == ":"
    assert line.index("o") == round(0.25 * 22)
    assert line.index("-") == round(0.1 * 22)
    assert draw_bar(Bar("a", 0.0, -0.2, 0.2), 1.0)[11] == "o"
    assert draw_bar(Bar("a", 0.4, -0.2, 0.9), 1.0)[11] == "+"


def test_what_goes_on_has_an_arrow_and_what_is_hidden_nothing():
    assert draw_bar(Bar("a", 0.0, -9.0, 9.0), 1.0).startswith("<")
    assert draw_bar(Bar("a", 0.0, -9.0, 9.0), 1.0).endswith(">")
    assert draw_bar(Bar("a", None, None, None), 1.0).strip() == ":"


def test_no_line_is_wider_than_a_terminal():
    bars = [
        Bar("a policy with a very long name - another one of the kind", -0.1, -0.3, 0.2, "x " * 90),
        Bar("b", None, None, None, "hidden"),
        Bar("c", 12.5, -100.25, 3000.5),
    ]
    lines = draw_bars(bars[:2])
    assert max(map(len, lines)) <= 80
    assert any("another one of the kind" in line for line in lines)
    assert draw_bars([])


def test_reach_is_a_round_number():
    assert [round_up(v) for v in (0.031, 0.05, 0.0748, 1.0, 2.1)] == [0.05, 0.05, 0.1, 1.0, 5.0]


def test_nothing_has_no_sign_of_its_own():
    line = draw_bars([Bar("a", -1e-9, -1e-7, 1e-9)])[1]
    assert "+0.0000 [+0.0000, +0.0000]" in line
