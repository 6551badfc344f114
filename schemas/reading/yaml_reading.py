"""Strict parser of YAML: no repeated keys, exact decimals, no words read as dates or octal numbers.

PyYAML builds floats from decimals, keeps the last of two equal keys, reads ``no`` as false, 012 as ten and 2020-01-01 as a date, and
prints the lines around a syntax error. So only its parser is used, and scalars are read by the rules of YAML 1.2: ``true`` and ``false``,
``null``, whole numbers and decimals; all else is text, a number with a leading zero too.
"""

from __future__ import annotations

import re
from decimal import Decimal

import yaml

from schemas.errors.signals import UnreadableError
from schemas.reading.faults import Loc, in_qid, in_tree, key_path

# Bounded, because Python raises an error of its own for whole numbers of more than 4,300 digits.
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,399}|[1-9][0-9]{0,2}(?:_[0-9]{3})+)")
_DECIMAL = re.compile(r"[-+]?(?:(?:0|[1-9][0-9]{0,399})(?:\.[0-9]{0,400})?|\.[0-9]{1,400})(?:[eE][-+]?[0-9]{1,6})?")
_WORDS = {word: value for value, forms in ((True, "true True TRUE"), (False, "false False FALSE")) for word in forms.split()}
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_PLAIN_TAGS = frozenset(f"tag:yaml.org,2002:{kind}" for kind in ("str", "seq", "map"))
_MOST_NODES = 1_000_000
_HALVES = re.compile("[\ud800-\udfff]")
"""Halves of characters beyond the first plane, as UTF-16 has them: alone they are no text, and nothing can be called by them."""
_DATA_AS_WRITTEN: Loc = ("source", "null_values")


def parse(text: str, at: Loc = ()) -> tuple[object, list[str]]:
    """Parse a YAML text, and return its data and its faults.

    Args:
        text: the document.
        at: where in the job the document stands; () is the whole job. Below a tree and ``source.null_values`` scalars stay as written.
    """
    reading = _Reading()
    try:
        node = compose(text)
        value = reading.value(node, at) if node else None
    except UnreadableError as error:
        return None, [*reading.faults, str(error)]
    except RecursionError:
        return None, ["lists or mappings are nested too deeply; a job needs few levels"]
    if node is None and not at:
        reading.faults.append("the file is empty; a job begins with version: 1")
    return value, reading.faults


def compose(text: str) -> yaml.Node | None:
    """Return the root node of a YAML document, or None if it is empty."""
    sentence = "not valid YAML"
    try:
        return yaml.compose(text, Loader=yaml.BaseLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        sentence += f"{where}; check indentation, brackets and quotes there"
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        what = "character that is not UTF-8" if _HALVES.match(chr(error.character)) else "control character"
        sentence += f": a {what} in line {line}; remove it"
    except (ValueError, OverflowError):
        sentence += ": an escape stands for no character; look for \\U and write the character itself"
    raise UnreadableError(sentence)


class _Reading:
    """Conversion of YAML nodes to data, which collects faults."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        self.count = 0
        self.open: set[int] = set()

    def value(self, node: yaml.Node, loc: Loc) -> object:
        """Return the data of a YAML node; an alias is converted again at each use."""
        self.count += 1
        if id(node) in self.open or self.count > _MOST_NODES:
            raise UnreadableError(f"an alias makes the job endless or too large (line {node.start_mark.line + 1}); write it out")
        if node.tag not in _PLAIN_TAGS:
            self.faults.append(f"a tag (!) is not allowed (line {node.start_mark.line + 1}); remove it")
        if isinstance(node, yaml.ScalarNode):
            self.whole(node)
            return scalar(node, loc)
        self.open.add(id(node))
        read = self.mapping(node, loc) if isinstance(node, yaml.MappingNode) else self.sequence(node, loc)
        self.open.discard(id(node))
        return read

    def whole(self, node: yaml.ScalarNode) -> None:
        """Replace lone surrogates in a scalar, which only escapes can write, and record a fault."""
        node.value, halves = _HALVES.subn("\ufffd", node.value)
        if halves:
            line = node.start_mark.line + 1
            self.faults.append(f"an escape such as \\ud800 stands for half a character (line {line}); write the character itself")

    def sequence(self, node: yaml.Node, loc: Loc) -> list[object]:
        """Return the data of a sequence's entries."""
        return [self.value(entry, (*loc, position)) for position, entry in enumerate(node.value)]

    def mapping(self, node: yaml.MappingNode, loc: Loc) -> dict[str, object]:
        """Return the data of a mapping with its keys as text.

        Of a repeated key the first entry is kept, and a fault is recorded.
        """
        read: dict[str, object] = {}
        lines: dict[str, int] = {}
        for key, entry in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                self.faults.append(f"{key_path(loc)}: a key must be a single word (line {line})")
                continue
            self.whole(key)
            if key.value in read:
                where = f"{key_path(loc)}: a key is" if in_qid(loc) else f"{key_path((*loc, key.value))}:"
                self.faults.append(f"{where} given twice (lines {lines[key.value]} and {line}); keep one")
            else:
                read[key.value], lines[key.value] = self.value(entry, (*loc, key.value)), line
        return read


def scalar(node: yaml.ScalarNode, loc: Loc) -> object:
    """Return the value of a YAML scalar by the rules of YAML 1.2.

    Quoted scalars are text, and so are plain ones below ``source.null_values`` and, words for null excepted, inside trees.
    """
    text = str(node.value)
    if node.style or loc[: len(_DATA_AS_WRITTEN)] == _DATA_AS_WRITTEN:
        return text
    # In a tree too: a dash with nothing behind it is a fault to be told, not an empty text.
    if text in _NULLS:
        return None
    if in_tree(loc):
        return text
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    return Decimal(text) if _DECIMAL.fullmatch(text) else text
