"""The documents are short and plain: the size of docs/, the length of sentences, and the field's words in place of our own."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import pytest

from tests.places import ROOT, tree

pytestmark = pytest.mark.house

MOST_BYTES = 180_000
MOST_WORDS, MEDIAN_WORDS = 35, 18
PAGES = sorted(path for path in (ROOT / "docs").rglob("*.md") if not {"_build", "reference"} & set(path.relative_to(ROOT / "docs").parts))
TEXTS = [*(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")), *PAGES]
PRIVATE = {
    r"told|tells|telling": "reveals, discloses; says, reports",
    r"known again|remade|made anew": "re-linked; rebuilt",
    r"crowds?": "linear counting",
    r"shelf|shelves": "two-level shuffle",
    r"desks?": "call queue",
    r"sealed|sealing|seals?": "encrypted; digest",
    r"abreast": "data-parallel",
    r"ladders?": "hierarchy, levels",
    r"placements?": "positions",
    r"outlook|front page": "forecast",
    r"fronts": "Pareto fronts",
    r"strange|strangers?|foreign": "mismatching; not ours",
    r"judgements?": "verdict",
    r"beside": "next to, with, besides",
    r"the whole of|what a node leaves|remainders?": "the complete table; suppressed records",
    r"stars?|starred|starring": "cell suppression, suppressed cells",
    r"rounds": "further passes",
    r"surcharges?": "suppression penalty",
    r"likely squares": "expected sum of squared class sizes",
    r"hulls?": "labels of sets",
    r"dissolving|dissolve|dissolved": "class dissolution",
    r"pooled|pooling": "merged",
    r"lots": "batches of cuts",
    r"ledger": "release history",
    r"at rest": "stable source; encryption of storage",
    r"laid aside|passing folders?": "quarantined; temporary folders",
    r"afterwards": "then, after publication",
    r"let go|give back|given back": "release memory",
}
"""Patterns of words that only we use, and what the field says."""


def prose(text: str) -> str:
    """Return a page without code, tables, comments, directives and targets of links; a piece of code counts as one word."""
    text = re.sub(r"^(`{3,}|:{3,}).*?^\1$", "\n", text, flags=re.M | re.S)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.S)
    text = re.sub(r"^(?: {4}(?! *[-*] ).*|\|.*\||\([a-z-]+\)=)$", "", text, flags=re.M)
    text = re.sub(r"(`+)[^`].*?\1", "code", text, flags=re.S)
    text = re.sub(r"\[[\w/.]+\.py\]", "[code]", text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return re.sub(r"^\[[\w.-]+\]: .*$", "", text, flags=re.M)


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a page; an item of a list ends the sentence before it, and headings are none."""
    for part in re.split(r"\n\s*\n|\n(?=\s*(?:[-*:>]|\d+\.) )|\n(?=#)", prose(text)):
        block = re.sub(r"^\s*(?:[-*:>]|\d+\.)\s+", "", part.strip())
        if not block.startswith("#"):
            yield from re.split(r"(?<![ (][A-Z]\.)(?<=[.!?])[*)\"]*\s+(?=[\"*(]*(?:[A-Z0-9]|[kltn]\b|code))", " ".join(block.split()))


def words(sentence: str) -> int:
    """Count the words of a sentence."""
    return sum(any(letter.isalnum() for letter in word) for word in sentence.split())


def test_the_pages_together_are_short_enough_to_read() -> None:
    assert sum(path.stat().st_size for path in PAGES) <= MOST_BYTES


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: page.stem)
def test_sentences_are_short(page: Path) -> None:
    found = [sentence for sentence in sentences(page.read_text("utf-8")) if words(sentence)]
    assert not [sentence for sentence in found if words(sentence) > MOST_WORDS]
    assert median(map(words, found)) <= MEDIAN_WORDS


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: page.stem)
def test_no_word_is_ours_alone(page: Path) -> None:
    text = prose(page.read_text("utf-8"))
    found = {match[0]: better for word, better in PRIVATE.items() for match in re.finditer(rf"\b(?:{word})\b", text, re.I)}
    assert not found


def test_long_sentences_are_found_and_code_is_not_read() -> None:
    long = " ".join(["word"] * 40)
    listed = f"- {long}. Two, by R. Wong: [here]({long.replace(' ', '/')}).\n"
    text = f"# {long}\n\nOne. `{long}` is code.\n\n{listed}\n```text\n{long}\n```\n\n| {long} |\n"
    assert [words(sentence) for sentence in sentences(text) if words(sentence)] == [1, 3, 40, 5]
    assert max(words(sentence) for sentence in sentences(f"First\n{long}")) == 41


NAMED_BY_NOBODY_ELSE = [
    "abreast",
    "shelf",
    "shelves",
    "desks?",
    "visits?",
    "hulls?",
    "outlook",
    "crowds?",
    "crowded",
    "surcharges?",
    "strange",
    "strangers?",
    "ladders?",
    "ledger",
    "lots?",
    "told",
    "tells?",
    "telling",
    "beside",
    "wholes?",
    "starred",
    "places",
    "anew",
    "whose",
    "census(?:es)?",
    "sealed",
    "sealing",
    "foreign",
    "placements?",
    "drivers?",
    "rounds",
]
"""Words of names that a newcomer would have to learn; see PRIVATE for what the field says."""


PARTICIPLES = set(
    [
        "asked",
        "done",
        "found",
        "given",
        "gone",
        "held",
        "kept",
        "known",
        "laid",
        "left",
        "lost",
        "looked",
        "made",
        "put",
        "said",
        "seen",
        "taken",
        "told",
        "wanted",
    ]
)
"""Alone they say nothing of what a function returns."""
GIVEN_BY_FILES = {"tell"}
"""What a file object of Python has to be called."""


def spelt(name: str) -> str:
    """Return a name in lower case with a line between its words."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def public_names(path: Path) -> Iterator[str]:
    """Yield the names that others call: a module's, its classes', its functions' and the methods' of its public classes."""
    yield path.stem
    for node in tree(path).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            yield node.name
            if isinstance(node, ast.ClassDef):
                yield from (one.name for one in node.body if isinstance(one, ast.FunctionDef) and not one.name.startswith("_"))


def is_private_word(name: str) -> bool:
    """Return whether a public name has a word that only we use, or is a participle alone."""
    return bool(re.search(rf"(?:^|_)({'|'.join(NAMED_BY_NOBODY_ELSE)})(?:_|$)", spelt(name))) or spelt(name) in PARTICIPLES


@pytest.mark.parametrize("floor", ["schemas", "core", "tasks", "flows"])
def test_public_names_have_a_noun_of_the_field(floor: str) -> None:
    names = [(path, name) for path in sorted((ROOT / floor).rglob("*.py")) for name in public_names(path)]
    assert not [f"{path.relative_to(ROOT)}: {name}" for path, name in names if is_private_word(name) and name not in GIVEN_BY_FILES]


def test_a_participle_alone_and_a_private_word_are_found() -> None:
    assert all(map(is_private_word, ["held", "whole_of", "KnownPlaces", "told_apart"]))
    assert not any(map(is_private_word, ["held_by_few_persons", "placeholder", "source_value_counts"]))


PRIVATE_EVERYWHERE = NAMED_BY_NOBODY_ELSE[: NAMED_BY_NOBODY_ELSE.index("told")]
"""What no private function is called either."""


@pytest.mark.parametrize("floor", ["schemas", "core", "tasks", "flows"])
def test_modules_classes_and_functions_have_names_of_the_field(floor: str) -> None:
    private = re.compile(rf"(?:^|_)({'|'.join(PRIVATE_EVERYWHERE)})(?:_|$)")
    found = []
    for path in sorted((ROOT / floor).rglob("*.py")):
        names = [node.name for node in ast.walk(tree(path)) if isinstance(node, ast.FunctionDef | ast.ClassDef)]
        found += [f"{path.relative_to(ROOT)}: {name}" for name in map(spelt, (path.stem, *names)) if private.search(name)]
    assert found == []


LONGEST_FIRST_LINE = 100


def long_first_lines(module: ast.Module) -> list[str]:
    """Return the first lines of docstrings that are too long for one plain sentence."""
    nodes = [node for node in ast.walk(module) if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)]
    lines = [(ast.get_docstring(node, clean=False) or "").lstrip().split("\n", 1)[0] for node in nodes]
    return [line for line in lines if len(line) > LONGEST_FIRST_LINE]


@pytest.mark.parametrize("folder", ["schemas", "core", "tasks", "flows", "data", "deployments", "benchmarks"])
def test_docstrings_begin_with_a_short_line(folder: str) -> None:
    paths = sorted((ROOT / folder).rglob("*.py"))
    assert paths
    assert not [f"{path.relative_to(ROOT)}: {line}" for path in paths for line in long_first_lines(tree(path))]


def test_a_long_first_line_is_found_wherever_it_stands() -> None:
    long, short = "x" * (LONGEST_FIRST_LINE + 1), "x" * LONGEST_FIRST_LINE
    code = '"""{0}"""\nclass A:\n    """{0}"""\n    def f(self):\n        """{0}"""\nasync def g():\n    """{0}\n\n    More.\n    """\n'
    assert long_first_lines(ast.parse(code.format(long))) == [long] * 4
    assert long_first_lines(ast.parse(code.format(f"{short}\n\n{long}"))) == []


def test_the_version_is_that_which_the_changelog_is_about() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    newest, state = re.findall(r"^## \[(.+?)\] - (.+)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)[0]
    assert version == (f"{newest}.dev0" if state == "unreleased" else newest)
