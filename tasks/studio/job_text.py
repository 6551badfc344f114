"""Edits of a job file's text that change no other byte, and the masking of rare values in it.

A change replaces, adds or removes one value at the place that the parser reports. Comments, blank lines, quotes and the order of keys
stay. Only comments inside a replaced value are lost. An entry that moves to another list takes the comment at its line's end along,
unless the list is written in brackets.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any

import yaml

from schemas.errors.base import JobError
from schemas.errors.signals import UnreadableError
from schemas.reading.job_files import compose, parse
from tasks.planning.draft_text import yaml_name

Way = tuple[str | int, ...]
"""Path of a value: keys of mappings and positions in lists, from the outside."""


def flow_text(value: object) -> str:
    """Return plain data as YAML on one line."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{yaml_name(str(key))}: {flow_text(one)}' for key, one in value.items())}}}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[{', '.join(map(flow_text, value))}]"
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    return yaml_name(value) if isinstance(value, str) else str(value)


def read_data(text: str) -> dict[str, Any]:
    """Return a job's text parsed into plain data; raise ``JobError`` if it is no valid mapping."""
    data, faults = parse(text)
    if faults or not isinstance(data, dict):
        raise JobError("The job", faults or ["the job must be a mapping (key: value), as in version: 1"])
    return data


def with_value(text: str, yaml_path: Way, value: object) -> str:
    """Return a job's text with the value at a path replaced or added; raise ``JobError`` if it cannot be."""
    data = read_data(text)
    wanted = deepcopy(data)
    _put(wanted, yaml_path, value)
    return _checked(_placed(text, yaml_path, flow_text(value)), wanted)


def without_value(text: str, way: Way) -> str:
    """Return a job's text without the entry at a path; unchanged if there is none."""
    wanted = deepcopy(read_data(text))
    if not _has(wanted, way):
        return text
    parent = _at(wanted, way[:-1])
    del parent[way[-1]]
    return _checked(_removed(text, way), wanted)


def with_entry(text: str, way: Way, value: object, comment: str) -> str:
    """Return a job's text with an entry appended to a list, which is created if missing.

    Args:
        way: Path of the list.
        comment: Comment at the entry's line end, where the list has a line for each entry.
    """
    wanted = deepcopy(read_data(text))
    if not _has(wanted, way) or _at(wanted, way) is None:
        return with_value(text, way, [value])
    _at(wanted, way).append(value)
    return _checked(_appended(text, way, flow_text(value), comment), wanted)


def comments_behind(text: str, way: Way) -> dict[str, str]:
    """Return the comments at the line ends of a list of columns, by column name."""
    node = _found(text, way)[2]
    if not isinstance(node, yaml.SequenceNode) or _is_flow(node):
        return {}
    found = {}
    for entry in node.value:
        name = (
            next((one.value for key, one in entry.value if key.value == "name"), "") if isinstance(entry, yaml.MappingNode) else entry.value
        )
        line = text[_end(entry) :].split("\n", 1)[0].strip()
        if line.startswith("#") and isinstance(name, str):
            found[name] = line[1:].strip()
    return found


def _checked(text: str, wanted: object) -> str:
    """Return an edited text if it parses to the wanted data; raise ``JobError`` otherwise."""
    try:
        got, faults = parse(text)
    except UnreadableError:
        got, faults = None, [""]
    if faults or got != wanted:
        raise JobError("The job", ["it is written in a way that cannot be changed in place (an alias, say); change its text instead"])
    return text


def _at(data: Any, way: Way) -> Any:
    for step in way:
        data = data[step]
    return data


def _has(data: Any, way: Way) -> bool:
    try:
        _at(data, way)
    except (KeyError, IndexError, TypeError):
        return False
    return True


def _put(data: Any, way: Way, value: object) -> None:
    for step in way[:-1]:
        if isinstance(data, dict) and data.get(step) is None:
            data[step] = {}
        data = data[step]
    data[way[-1]] = value


def _found(text: str, way: Way) -> tuple[yaml.Node | None, yaml.Node | None, yaml.Node | None]:
    """Return the parent node, the key node and the node at a path; None for missing ones."""
    node = compose(text)
    parent, key = None, None
    for step in way:
        parent, key, child = node, None, None
        if isinstance(node, yaml.MappingNode):
            key, child = next(((one, other) for one, other in node.value if one.value == step), (None, None))
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            child = node.value[step]
        if child is None:
            return parent, None, None
        node = child
    return parent, key, node


def _is_flow(node: yaml.Node) -> bool:
    """Return whether a list or mapping is written in brackets."""
    return isinstance(node, yaml.CollectionNode) and bool(node.flow_style)


def _end(node: yaml.Node) -> int:
    """Return the text position at which a node ends, without the comments that follow it."""
    if isinstance(node, yaml.ScalarNode) or _is_flow(node) or not node.value:
        return int(node.end_mark.index)
    last = node.value[-1]
    return _end(last[1] if isinstance(node, yaml.MappingNode) else last)


def _placed(text: str, way: Way, written: str) -> str:
    _, key, node = _found(text, way)
    if node is not None:
        if key is None:
            return text[: node.start_mark.index] + written + text[_end(node) :]
        colon = text.index(":", key.end_mark.index)
        return f"{text[: colon + 1]} {written}{text[max(_end(node), colon + 1) :]}"
    above = compose(text) if len(way) == 1 else _found(text, way[:-1])[2]
    if isinstance(above, yaml.MappingNode):
        return _added(text, above, f"{yaml_name(str(way[-1]))}: {written}")
    return _placed(text, way[:-1], f"{{{yaml_name(str(way[-1]))}: {written}}}")


def _added(text: str, parent: yaml.Node, entry: str) -> str:
    if _is_flow(parent) or not parent.value:
        close = parent.end_mark.index - 1
        return f"{text[:close].rstrip()}{', ' if parent.value else ''}{entry}{text[close:]}"
    first = parent.value[0]
    column = (first[0] if isinstance(parent, yaml.MappingNode) else first).start_mark.column
    if isinstance(parent, yaml.SequenceNode):
        start = first.start_mark.index
        dash = text.rindex("-", text.rindex("\n", 0, start) + 1, start)
        column, entry = dash - text.rindex("\n", 0, dash) - 1, f"- {entry}"
    end = _line_end(text, _end(parent))
    return f"{text[:end]}\n{' ' * column}{entry}{text[end:]}"


def _line_end(text: str, place: int) -> int:
    end = text.find("\n", place)
    return len(text) if end < 0 else end


def _appended(text: str, way: Way, written: str, comment: str) -> str:
    _, key, node = _found(text, way)
    assert node is not None
    behind = f"  # {comment}" if comment else ""
    if node.value and not _is_flow(node):
        return _added(text, node, f"{written}{behind}")
    rest = text[_end(node) : _line_end(text, _end(node))].strip()
    if node.value or key is None or _is_inside_brackets(text, way) or (rest and not rest.startswith("#")):
        return _added(text, node, written)
    # An empty list becomes one with a line for each entry.
    colon = text.index(":", key.end_mark.index)
    kept = f"  {rest}" if rest else ""
    lines = f"{text[: colon + 1]}{kept}\n{' ' * (key.start_mark.column + 2)}- {written}{behind}"
    return lines + text[_line_end(text, _end(node)) :]


def _is_inside_brackets(text: str, way: Way) -> bool:
    return any(_is_flow(node) for end in range(len(way)) if (node := _found(text, way[:end])[2] or compose(text)) is not None)


def _removed(text: str, way: Way) -> str:
    parent, key, node = _found(text, way)
    assert parent is not None and node is not None
    entries = [one[0] for one in parent.value] if isinstance(parent, yaml.MappingNode) else list(parent.value)
    ends = [_end(one[1]) for one in parent.value] if isinstance(parent, yaml.MappingNode) else [_end(one) for one in parent.value]
    place = entries.index(key if key is not None else node)
    if _is_flow(parent):
        if place:
            return text[: ends[place - 1]] + text[ends[place] :]
        after = entries[1].start_mark.index if len(entries) > 1 else parent.end_mark.index - 1
        return text[: entries[0].start_mark.index] + text[after:]
    if len(entries) == 1:
        # A block needs an entry. The comment behind this one goes with it.
        behind = text[ends[place] : _line_end(text, ends[place])]
        kept = text[: ends[place]] + text[_line_end(text, ends[place]) :] if behind.strip().startswith("#") else text
        return _placed(kept, way[:-1], "[]" if isinstance(parent, yaml.SequenceNode) else "{}")
    start = text.rfind("\n", 0, entries[place].start_mark.index) + 1
    return text[:start] + text[_line_end(text, ends[place]) + 1 :]


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
    """Return a text with placeholders replaced by the file's values; raise ``JobError`` for unknown ones.

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
