"""Pictures of a lattice for a page have each word and each box where it belongs, however wide the page is."""

from __future__ import annotations

import re
from itertools import combinations

import numpy as np
import pytest

from core.charts.chart import Picture, width_of
from core.lattice.picture import Frame, heights_picture, lattice_picture, nodes_picture
from core.lattice.search import LatticeMap, map_of
from tests.core.lattice.test_map import words_of

STATES = ["fails the privacy model", "passes, and was counted", "cannot be better: cut by the bound", "not examined: memory"]


def small() -> LatticeMap:
    """Twelve nodes in five heights, of each status three."""
    return map_of("job", ["sex", "age", "zip"], np.arange(12, dtype=np.int8).reshape(2, 2, 3) % 4, (1, 0, 1))


def boxes_of(picture: Picture) -> list[tuple[float, ...]]:
    """The left edge, upper edge, width and height of each box."""
    found = re.findall(r"<rect x='([\d.-]+)' y='([\d.-]+)' width='([\d.]+)' height='([\d.]+)'", picture.body)
    return [tuple(map(float, box)) for box in found]


@pytest.mark.parametrize(("width", "each"), [(400, 72), (200, 22)])
def test_bars_stand_beside_their_height_and_before_their_number(width: int, each: int) -> None:
    picture = heights_picture(small(), width)
    sizes, chosen = [1, 3, 4, 3, 1], 2
    assert words_of(picture.body)[0] == (0, 12, "Combinations by height, coarse at the top")
    expected = []
    for height, size in enumerate(sizes):
        y = 110 - 18 * height
        expected += [(28, y, str(height)), (34 + size * each + 5, y, f"{size}, chosen" if height == chosen else str(size))]
    assert words_of(picture.body)[1:11] == expected
    sizes_of_words = [int(size) for size in re.findall(r"<text [^>]*font-size='(\d+)'", picture.body)]
    assert sizes_of_words == [12, *[10] * 10, *[11] * 5]
    bars = [(34 + each * place, 98 - 18 * height, each, 14) for height, size in enumerate(sizes) for place in range(size)]
    assert boxes_of(picture)[:12] == bars


@pytest.mark.parametrize(("width", "lines"), [(400, [0, 0, 1, 2, 3]), (200, [0, 1, 2, 3, 4]), (2000, [0] * 5)])
def test_signs_stand_one_after_the_other_in_as_many_lines_as_are_needed(width: int, lines: list[int]) -> None:
    picture = heights_picture(small(), width)
    said = ["the chosen one", *(f"{state}: 3" for state in STATES)]
    expected, x = [], 0.0
    for place, (words, line) in enumerate(zip(said, lines, strict=True)):
        x = 2.0 if place == 0 or line != lines[place - 1] else x
        expected.append((x, 130 + 18 * line, words))
        x += 24 + width_of(words, 11) + 14
    assert boxes_of(picture)[12:] == [(pytest.approx(x, abs=0.05), y, 16, 11) for x, y, _ in expected]
    assert words_of(picture.body)[11:] == [(pytest.approx(x + 22, abs=0.05), y + 10, words) for x, y, words in expected]
    assert picture.height == 130 + 18 * lines[-1] + 16


@pytest.mark.parametrize(("width", "rows", "tops"), [(400, [1, 3, 4, 3, 1], range(5)), (200, [1, 2, 1, 2, 2, 2, 1, 1], None)])
def test_nodes_of_a_height_stand_side_by_side_as_far_as_they_fit(width: int, rows: list[int], tops: range | None) -> None:
    picture = nodes_picture(small(), width)
    assert words_of(picture.body)[:2] == [(0, 12, "All combinations: levels of"), (0, 28, "sex, age, zip")]
    # A line of the same height follows 14 pixels sooner.
    ys = [46 + 62 * row for row in tops] if tops else [46, 108, 156, 218, 266, 328, 376, 438]
    middles = [(width * (place + 0.5) / size, y) for size, y in zip(rows, ys, strict=True) for place in range(size)]
    assert boxes_of(picture) == [(pytest.approx(x - 29.5, abs=0.06), y, 59, 24) for x, y in middles]
    assert [(x, y) for x, y, _ in words_of(picture.body)[2:]] == [(pytest.approx(x, abs=0.06), y + 16.5) for x, y in middles]
    assert picture.height == ys[-1] + 12 + 40
    assert len(re.findall("<line ", picture.body)) == (20 if tops else 0), "lines would end at a second row"


@pytest.mark.parametrize(("fit", "rows"), [(1, [3, 1, 3]), (5, [3, 1, 3]), (6, [6, 3, 1, 3, 6]), (7, [7, 6, 3, 1, 3, 6, 7])])
def test_of_nodes_around_the_chosen_one_those_farther_than_a_level_are_drawn_where_their_row_fits(fit: int, rows: list[int]) -> None:
    drawn = map_of("job", ["a", "b", "c"], np.zeros((5, 5, 5), np.int8), (2, 2, 2))
    picture = nodes_picture(drawn, fit * (59 + 12))
    said = [words for _, _, words in words_of(picture.body) if re.fullmatch(r"[0-4] [0-4] [0-4]", words)]
    heights = [sum(map(int, words.split())) for words in said]
    assert [heights.count(height) for height in sorted(set(heights), reverse=True)] == rows
    assert heights == sorted(heights, reverse=True)
    assert len(boxes_of(picture)) == sum(rows)


def test_names_of_columns_are_wrapped_and_separated_by_commas() -> None:
    names = ["first of all", "second", "third of them", "last"]
    drawn = map_of("job", names, np.zeros((2, 2, 2, 2), np.int8), (0, 0, 0, 0))
    for width, lines in ((1000, [", ".join(names)]), (140, ["first of all, second,", "third of them, last"]), (10, ["first of all,"])):
        found = words_of(nodes_picture(drawn, width).body)[1 : 1 + len(lines)]
        assert found == [(0, 28 + 16 * number, line) for number, line in enumerate(lines)]


@pytest.mark.parametrize(("room", "lines"), [(0.0, 1), (-0.01, 2)])
def test_names_that_just_fill_a_line_stand_in_it(room: float, lines: int) -> None:
    drawn = map_of("job", ["first of all", "second"], np.zeros((2, 2), np.int8), (0, 0))
    width = width_of("first of all, second", 11) + room
    said = [words for _, _, words in words_of(nodes_picture(drawn, width).body)][1:3]
    assert said[0] == ("first of all, second" if lines == 1 else "first of all,")
    assert (said[1] == "second") == (lines == 2)


def test_what_does_not_fit_a_box_is_cut_at_its_beginning() -> None:
    """Fifteen levels take more than a box of 150 pixels has room for, and the names of what differs too."""
    names = [f"a long name of column {number}" for number in range(15)]
    drawn = map_of("job", names, np.zeros((2,) * 15, np.int8), (1,) * 15)
    said = [words for _, _, words in words_of(nodes_picture(drawn, 900).body)]
    cut = [words for words in said if words.startswith("…")]
    fits = int(150 / width_of("m", 11))
    assert "chosen" in said
    assert set(cut) == {f"{name} -1"[1 - fits :].join(["…", ""]) for name in names if len(f"{name} -1") > fits}
    assert {len(words) for words in cut} <= {fits}


def test_a_frame_has_room_for_its_widest_row_of_nodes_and_each_line_of_its_legend() -> None:
    assert Frame.of(small()) == Frame(900, 118 + 5 * 62 + 50 + 24 + 5 * 18, 424, 118, (24, 118 + 5 * 62 + 50 + 8), 59)
    # Twelve nodes of six levels stand side by side, all of them failed; and of one column with many levels the bars are the higher part.
    wide = map_of("job", list("abcdef"), np.zeros((2,) * 6, np.int8), (0,) * 6)
    assert (Frame.of(wide).width, Frame.of(wide).box) == (424 + 6 * (14 + 9 * 11 + 12) + 24, 14 + 9 * 11)
    high = map_of("job", ["a", "b"], np.zeros((30, 30), np.int8), (0, 0))
    assert (len(high.heights), Frame.of(high).height) == (59, 118 + 59 * 20 + 50 + 24 + 2 * 18)


def test_bars_nodes_and_signs_are_drawn_each_in_the_way_of_its_status() -> None:
    drawn = small()
    found = re.findall(
        r"<rect x='([\d.]+)' y='([\d.]+)' width='([\d.]+)' height='(\d+)'.*? stroke-dasharray='([^']+)'", lattice_picture(drawn).body
    )
    rects = [(*map(float, numbers), dash) for *numbers, dash in found]
    dashes = {"fails": "none", "passes": "none", "cut": "4 2", "unexamined": "1 2"}
    bars = []
    for height, row in enumerate(drawn.heights):
        x = 64.0
        for status, dash in dashes.items():
            if row[status]:
                bars.append((x, 118 + 20 * (4 - height), 62.5 * row[status], 16, dash))
                x += 62.5 * row[status]
    assert rects[: len(bars)] == bars
    rows = [[one for one in drawn.drawn if sum(one.node) == height] for height in range(4, -1, -1)]
    boxes = []
    for number, row in enumerate(rows):
        for place, one in enumerate(row):
            x, dash = 424 + 452 * (place + 0.5) / len(row) - 29.5, "none" if one.node == drawn.node else dashes[one.status]
            boxes.append((pytest.approx(x, abs=0.06), 118 + 62 * number, 59, 24, dash))
    assert rects[len(bars) : -4] == boxes
    assert rects[-4:] == [(24, 486 + 18 * line, 16, 11, dash) for line, dash in enumerate(dashes.values(), start=1)]


def test_a_line_joins_each_two_nodes_one_level_apart_and_stands_out_at_the_chosen_one() -> None:
    drawn = small()
    body = nodes_picture(drawn, 400).body
    nodes = {(x, y - 4.5): tuple(map(int, said.split())) for x, y, said in words_of(body)[2:]}
    lines = re.findall(r"<line x1='([\d.]+)' y1='([\d.]+)' x2='([\d.]+)' y2='([\d.]+)' class='s-(\w+)'.*? stroke-width='([\d.]+)'", body)
    found = {(nodes[float(x), float(y)], nodes[float(over), float(up)]): (ink, thick) for x, y, over, up, ink, thick in lines}
    steps = {(low, high) for low, high in combinations(sorted(nodes.values()), 2) if sum(map(abs, np.subtract(high, low))) == 1}
    assert found == {pair: ("chosen", "1.2") if drawn.node in pair else ("quiet", "0.8") for pair in steps}


@pytest.mark.parametrize(("levels", "each"), [((18, 18), 1), ((18, 19), 1), ((19, 19), 2), ((40, 31), 2)])
def test_heights_are_named_as_far_as_their_rows_have_room_and_the_chosen_one_always_is(levels: tuple[int, int], each: int) -> None:
    drawn = map_of("job", ["a", "b"], np.zeros(levels, np.int8), (0, 3))
    named = [int(said) for x, _, said in words_of(heights_picture(drawn, 400).body)[1:] if x == 28]
    assert named == [height for height in range(sum(levels) - 1) if height == 3 or (height % each == 0 and abs(height - 3) >= each)]


def test_a_sign_that_is_wider_than_its_page_has_a_line_of_its_own_and_the_first_one_the_first_line() -> None:
    found = words_of(heights_picture(small(), 60).body)[11:]
    assert found == [(24, 140 + 18 * line, words) for line, words in enumerate(["the chosen one", *(f"{state}: 3" for state in STATES)])]


@pytest.mark.parametrize(("more", "line"), [(0, 0), (-0.25, 1)])
def test_signs_that_just_fill_a_line_stay_on_it(more: float, line: int) -> None:
    first, second = (24 + width_of(words, 11) for words in ("the chosen one", f"{STATES[0]}: 3"))
    found = words_of(heights_picture(small(), 2 + first + 14 + second + more).body)[11:]
    assert [y for _, y, _ in found][:2] == [140, 140 + 18 * line]


def test_a_status_that_no_node_has_has_no_sign() -> None:
    failed = map_of("job", ["a", "b"], np.zeros((2, 3), np.int8), (0, 0))
    assert [words for _, _, words in words_of(heights_picture(failed, 400).body)][-2:] == ["the chosen one", f"{STATES[0]}: 6"]


def test_a_picture_has_the_title_of_what_it_shows_and_its_alternative_text_counts_its_nodes() -> None:
    pictures = [lattice_picture(small()), heights_picture(small(), 400), nodes_picture(small(), 300)]
    assert [picture.title for picture in pictures] == ["The lattice of job", "The lattice of job", "Nodes of the lattice of job"]
    counted = f"12 nodes: {'; '.join(f'3 {state}' for state in STATES)}. Chosen: sex 1, age 0, zip 1."
    assert [picture.alt_text for picture in pictures] == [counted] * 3
    assert [picture.width for picture in pictures] == [900, 400, 300]
