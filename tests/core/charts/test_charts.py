"""Charts show every figure that there is, on round scales, and are whole by themselves, on light paper and on dark."""

from __future__ import annotations

import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.charts.chart import (
    COLOURS,
    DARK_STYLE,
    LONGEST,
    SLOTS,
    WIDE,
    Chart,
    ChartStyle,
    Picture,
    bar_chart,
    linear_scale,
    scale_of,
    short_figure,
)
from core.charts.scatter import LABEL_GAP, line_chart
from docs.method_pictures import side_by_side
from tests.oracles.contrast import contrast
from tests.places import ROOT

FIGURES = {"skald": [0.8, 0.9, None], "mondrian": [0.2, 0.21, 0.22], "a & b": [0.2, 0.21, 0.221]}
SVG = "{http://www.w3.org/2000/svg}"
BAR = re.compile(r"<rect x='([\d.]+)' y='([\d.]+)' width='([\d.]+)' height='([\d.]+)'")


def of(picture: Picture) -> str:
    """Return a picture as SVG, once it was read as XML."""
    svg = picture.inline()
    ElementTree.fromstring(svg)
    return svg


@given(st.lists(st.just(0.0) | st.floats(1e-9, 1e12), min_size=1, max_size=20))
def test_every_figure_lies_between_the_ends_of_its_scale(values: list[float]) -> None:
    scale = scale_of(values)
    assert all(-1e-6 <= scale.relative_position(value) <= 1 + 1e-6 for value in values)
    assert list(scale.ticks) == sorted(set(scale.ticks))
    assert 2 <= len(scale.ticks) <= 11
    assert scale.log == (min(values) > 0 and max(values) / min(values) >= WIDE)


def test_nothing_else_draws() -> None:
    """Pictures are made here: no other module writes SVG of its own, or has a library do it."""
    own = [path for floor in ("core", "tasks", "flows") for path in (ROOT / floor).rglob("*.py") if path.parent != ROOT / "core" / "charts"]
    assert own
    assert not [path for path in own if re.search(r"<svg|\b(matplotlib|pygal|plotly|altair|seaborn)\b", path.read_text("utf-8"))]


def test_ticks_are_round() -> None:
    assert linear_scale(0.79).ticks == (0, 0.2, 0.4, 0.6, 0.8)
    assert linear_scale(23).ticks == (0, 5, 10, 15, 20, 25)
    assert [short_figure(value) for value in (0, 0.25, 16.69, 1234, 20_000, 10_541_769, 3e9)] == [
        "0",
        "0.25",
        "16.7",
        "1,234",
        "20 k",
        "10.5 M",
        "3 G",
    ]


def test_lines_name_every_series_apart_and_leave_out_what_there_is_not() -> None:
    svg = of(line_chart(Chart("GCP", "less is better", FIGURES), ["5", "10", "20"], "k"))
    assert len(re.findall(r"<path d='M[^']*' class='s-series-", svg)) == 3
    # A mark per figure and one beside each name.
    assert svg.count("stroke-width='1.6'") == 8 + 3
    names = {name: float(y) for y, name in re.findall(r"<text x='390.0' y='([\d.]+)'[^>]*>([^<]+)</text>", svg)}
    assert set(names) == {"skald", "mondrian", "a &amp; b"}
    heights = sorted(names.values())
    assert all(below - above >= LABEL_GAP - 0.1 for above, below in pairwise(heights))


def test_lines_of_many_series_have_room_for_every_name() -> None:
    picture = line_chart(Chart("many", "", {f"series {number}": [1.0, 1.0] for number in range(40)}), ["a", "b"], "x")
    places = [float(y) for y in re.findall(r"<text x='390.0' y='([\d.-]+)'", of(picture))]
    assert len(places) == 40
    assert min(places) > 34
    assert max(places) < picture.height


def test_what_others_are_compared_with_is_dashed_and_hollow() -> None:
    svg = of(
        line_chart(
            Chart("DM", "", {"a": [1, 2], "b": [2, 3]}, styles={"a": ChartStyle(0), "b": ChartStyle(0, quiet=True)}), ["5", "10"], "k"
        )
    )
    assert svg.count("stroke-dasharray") == 1
    assert svg.count("class='f-paper s-series-0'") == 3
    assert svg.count("class='f-series-0 s-series-0'") == 3


def test_bars_write_every_figure_beside_its_bar_and_name_the_chosen_in_bold() -> None:
    svg = of(bar_chart(Chart("CPU time", "", {"s": [2.5, None, 5.0]}), ["skald", "canon", "rayden"], chosen="rayden"))
    widths = [float(width) for _, _, width, _ in BAR.findall(svg)]
    assert len(widths) == 2
    assert widths[0] * 2 == pytest.approx(widths[1], abs=0.2)
    assert "not measured" in svg
    assert re.findall(r"font-weight='600'>([^<]+)<", svg) == ["CPU time", "rayden"]


@pytest.mark.slow
@given(st.lists(st.text(min_size=1, max_size=60), min_size=1, max_size=5, unique=True), st.booleans())
def test_bars_stay_inside_their_picture_however_long_their_names(names: list[str], headed: bool) -> None:
    shares = [index / len(names) for index in range(len(names))]
    picture = bar_chart(Chart("t", "n", {"Source": [1.0] * len(names), "Release": shares}), names, axis_end=1.0, headed=headed)
    for x, y, width, height in BAR.findall(picture.body):
        assert float(x) + float(width) <= picture.width
        assert float(y) + float(height) <= picture.height


def test_a_long_name_is_cut_and_told_in_full_under_the_pointer() -> None:
    name = "n" * (LONGEST + 1)
    svg = of(bar_chart(Chart("t", "", {"s": [1]}), [name]))
    assert f"<title>{name}</title>" in svg
    assert f">{'n' * (LONGEST - 1)}…</text>" in svg


def test_control_characters_of_names_are_written_as_escapes_because_no_xml_may_have_them() -> None:
    name = "n" * LONGEST + "\x1b[31m\u202e\x00"
    svg = of(bar_chart(Chart(name, name, {name[-9:]: [1, 2], "s": [2, 1]}), [name, name[-9:]]))
    assert svg.replace("\n", " ").isprintable()
    assert f"<title>{'n' * LONGEST}\\x1b[31m\\u202e\\x00</title>" in svg


def pictures() -> dict[str, Picture]:
    chart = Chart("GCP", "less is <better>", FIGURES)
    single = line_chart(chart, ["5", "10", "20"], "k")
    lying = bar_chart(Chart("NCP", "note", {"s": [0.1, 0.2]}), ["a", "b"])
    return {"lines": single, "bars": lying, "beside": side_by_side("All", "in two parts", [single, lying])}


@pytest.mark.parametrize("picture", pictures().values(), ids=pictures())
def test_a_picture_by_itself_has_paper_and_a_title_and_loads_nothing(picture: Picture) -> None:
    svg = picture.alone()
    root = ElementTree.fromstring(svg)
    assert [child.tag for child in root][:4] == [f"{SVG}{tag}" for tag in ("title", "desc", "style", "rect")]
    assert root.attrib["role"] == "img"
    assert svg.index("class='f-paper'") < svg.index("<text")
    assert not re.findall(r"href|url\(|<script|@import|<a ", svg)


@pytest.mark.parametrize("picture", pictures().values(), ids=pictures())
def test_every_colour_is_one_of_the_table_and_print_is_light(picture: Picture) -> None:
    svg = picture.alone()
    classes = {name for words in re.findall(r"class='([^']*)'", svg) for name in words.split()}
    assert {name[2:] for name in classes} <= COLOURS.keys()
    assert all(f".{name}{{" in DARK_STYLE for name in classes)
    drawn = set(re.findall(r"#[0-9A-F]{6}", svg.replace(DARK_STYLE, "")))
    assert drawn <= {light for light, _ in COLOURS.values()}
    assert re.findall(r"@media ([^{]*)\{", svg) == ["screen and (prefers-color-scheme: dark)", "print"]


@pytest.mark.parametrize("dark", [0, 1], ids=["light", "dark"])
def test_words_and_marks_can_be_told_from_what_is_behind_them(dark: int) -> None:
    def between(one: str, other: str) -> float:
        return contrast(COLOURS[one][dark], COLOURS[other][dark])

    for word in ("ink", "soft", "chosen"):
        assert between(word, "paper") >= 4.5, word
    for status in ("fails", "passes", "cut", "unexamined"):
        assert between(f"on-{status}", status) >= 4.5, status
    for mark in ("edge", *(f"series-{slot}" for slot in range(SLOTS))):
        assert between(mark, "paper") >= 3, mark
