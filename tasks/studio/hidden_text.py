"""Masking of rare values in a job file's text for the page, and their restoration after edits."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import yaml

from schemas.errors.base import JobError
from schemas.errors.signals import UnreadableError
from schemas.reading.yaml_reading import compose

SIGN = "‹hidden {}›"
_SIGNS = re.compile("‹hidden ([0-9]+)›")
HIDING_KEYS = ("tree", "query")
"""Keys below which a job file may hold cell values."""


def hidden_text(text: str, shared: Mapping[str, frozenset[str]]) -> str:
    """Return a job's text with rare values replaced by numbered placeholders.

    Args:
        text: Of the job file.
        shared: By quasi-identifier the values, as text, that enough people share; values of other columns are hidden.
    """
    spans = _spans(text, shared)
    made, at = [], 0
    for number, (start, end) in enumerate(spans, 1):
        made += [text[at:start], SIGN.format(number)]
        at = end
    return "".join([*made, text[at:]])


def full_text(shown: str, text: str, shared: Mapping[str, frozenset[str]]) -> str:
    """Replace the placeholders in an edited text by the values of the job file.

    Args:
        shown: The text that the page sent.
        text: Of the file, as it was shown.
        shared: As of ``hidden_text``.
    """
    spans = _spans(text, shared)

    def back(found: re.Match[str]) -> str:
        place = int(found[1]) - 1
        if not 0 <= place < len(spans):
            raise JobError("The text", ["a sign for a hidden value stands for none; write the value, or load the page again"])
        start, end = spans[place]
        return text[start:end]

    return _SIGNS.sub(back, shown)


def _spans(text: str, shared: Mapping[str, frozenset[str]]) -> list[tuple[int, int]]:
    """Return the start and end of each value to be hidden in a job's text."""
    try:
        root = compose(text)
    except (UnreadableError, RecursionError):
        # What cannot be read may hold anything behind these words.
        return [(found.start(1), found.end(1)) for found in re.finditer(r"(?ms)\b(?:tree|query)\s*:(.*)", text)]
    return sorted(set(_hidden(root, "", shared, set()))) if root is not None else []


def _hidden(node: yaml.Node, column: str, shared: Mapping[str, frozenset[str]], seen: set[int]) -> Iterator[tuple[int, int]]:
    """Yield the start and end of hidden values below a YAML node."""
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.MappingNode):
        named = next((str(one.value) for key, one in node.value if key.value == "name" and isinstance(one, yaml.ScalarNode)), column)
        for key, one in node.value:
            if key.value in HIDING_KEYS:
                yield from _leaves(one, shared.get(named, frozenset()) if key.value == "tree" else frozenset())
            else:
                yield from _hidden(one, named, shared, seen)
    elif isinstance(node, yaml.SequenceNode):
        for one in node.value:
            yield from _hidden(one, column, shared, seen)


def _leaves(node: yaml.Node, kept: frozenset[str]) -> Iterator[tuple[int, int]]:
    """Yield the start and end of a tree's scalars to hide: rare values, and group names equal to one.

    Other group names were chosen by the author of the job and are shown.
    """
    leaves, keys = _scalars(node)
    hidden = {str(one.value) for one in leaves} - kept
    for one in (*leaves, *keys):
        if str(one.value) in hidden:
            yield one.start_mark.index, one.end_mark.index


def _scalars(node: yaml.Node) -> tuple[list[yaml.Node], list[yaml.Node]]:
    """Return the leaves and the keys of a YAML tree."""
    leaves: list[yaml.Node] = []
    keys: list[yaml.Node] = []
    waiting, seen = [node], set[int]()
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, yaml.ScalarNode):
            leaves.append(one)
        elif isinstance(one, yaml.MappingNode):
            keys += [key for key, _ in one.value]
            waiting += [inner for _, inner in one.value]
        else:
            waiting += one.value
    return leaves, keys
