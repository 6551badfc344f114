"""Reading and validation of job files: a strict parser of YAML, for jobs of one table or of several.

PyYAML builds floats from decimals, keeps the last of two equal keys, reads ``no`` as false, 012 as ten and 2020-01-01 as a date, and
prints the lines around a syntax error. So only its parser is used, and scalars are read by the rules of YAML 1.2: ``true`` and ``false``,
``null``, whole numbers and decimals; all else is text, a number with a leading zero too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import PrivateAttr, ValidationError

from schemas.errors.base import JobError
from schemas.errors.signals import MisplacedError, UnreadableError
from schemas.reading.faults import Loc, fault_lines, in_qid, in_tree, key_path
from schemas.reading.model import TABLES_VERSION, StrictModel
from schemas.reading.regular_files import GivenJob, read_text

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


class _EventComposer(yaml.composer.Composer, yaml.resolver.BaseResolver):
    """Composer of YAML nodes in Python from events that libyaml reads; that in C exhausts the stack."""

    def __init__(self, text: str) -> None:
        yaml.composer.Composer.__init__(self)
        yaml.resolver.BaseResolver.__init__(self)
        events = yaml.CBaseLoader(text)
        self.check_event, self.peek_event, self.get_event = events.check_event, events.peek_event, events.get_event


def parse(text: str, at: Loc = ()) -> tuple[object, list[str]]:
    """Parse a YAML text; return its data, which is None if it is unreadable, and its faults.

    Args:
        text: the document.
        at: where in the job the document stands; () is the whole job. Below a tree and ``source.null_values`` scalars stay as written.
    """
    reading = _Reading()
    try:
        node = _compose_fast(text)
        value = reading.value(node, at) if node else None
    except UnreadableError as error:
        return None, [*reading.faults, str(error)]
    except RecursionError:
        return None, ["lists or mappings are nested too deeply; a job needs few levels"]
    if node is None and not at:
        reading.faults.append("the file is empty; a job begins with version: 1")
    return value, reading.faults


def _compose_fast(text: str) -> yaml.Node | None:
    """Return what ``compose`` does, by libyaml in a sixth of the time where it can read the text.

    A ``?`` or a tab inside a plain scalar, which YAML allows, is read by libyaml alone. Columns of nodes may differ.
    """
    # Of marks of byte order libyaml skips each. PyYAML may have been built without it.
    if yaml.__with_libyaml__ and "\ufeff" not in text:
        with suppress(yaml.YAMLError, ValueError, OverflowError):
            return _EventComposer(text).get_single_node()
    return compose(text)


def compose(text: str) -> yaml.Node | None:
    """Return the root node of a YAML document, None if empty; raise ``UnreadableError`` if not valid."""
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


def apply_overrides(data: dict[str, object], overrides: Sequence[str]) -> list[str]:
    """Set the overrides of ``--set`` in the job's data in place, in order; return their faults.

    A key that does not exist is set too. The job's validation then reports it, with the key that it resembles.
    """
    faults: list[str] = []
    for position, override in enumerate(overrides, 1):
        path, equals, text = override.partition("=")
        keys = path.strip().split(".")
        if not equals or not all(keys):
            faults.append(f"--set {position} must read key=value, with dots between the keys, as in privacy.k=10")
            continue
        loc: Loc = tuple(int(key) if key.isdecimal() else key for key in keys)
        value, wrong = parse(text, loc)
        faults += [f"--set {key_path(loc)}: {sentence}" for sentence in wrong]
        try:
            set_nested_key(data, keys, value)
        except MisplacedError as error:
            faults.append(f"--set {key_path(loc)}: {error}")
    return faults


def with_causing_overrides(faults: Sequence[str], overrides: Sequence[str], data: object) -> list[str]:
    """Return the faults of a job, with the ``--set`` key added to faults that the key caused.

    Args:
        faults: Sentences, each with its place in front.
        overrides: The settings.
        data: The job with the settings in it, for the names of quasi-identifiers.
    """
    keys = dict.fromkeys(override.partition("=")[0].strip() for override in overrides)
    places = {key: key_path(tuple(int(part) if part.isdecimal() else part for part in key.split(".")), data) for key in keys}
    return [fault + next((f" (given by --set {at})" for at in places.values() if _is_at(fault, at)), "") for fault in faults]


def _is_at(fault: str, at: str) -> bool:
    """Return whether a fault's location is that of an override or lies below it.

    If the location lies above, the fault must name the override's key.
    """
    if fault.startswith((f"{at}:", f"{at}.", f"{at}[")):
        return True
    told, _, said = fault.partition(": ")
    return at.startswith((f"{told}.", f"{told}[")) and (f"'{at.rpartition('.')[2]}'" in said or said.startswith("unknown key"))


def set_nested_key(data: dict[str, object], keys: list[str], value: object) -> None:
    """Set one entry of nested data in place, creating missing mappings; raise for an impossible place."""
    here: Any = data
    for step, key in enumerate(keys):
        last = step == len(keys) - 1
        if isinstance(here, list):
            index: Any = list_position(here, key)
        elif isinstance(here, dict):
            index = key
        else:
            raise MisplacedError(f"{key_path(tuple(keys[:step]))} holds a single value and no further keys")
        if last:
            here[index] = value
        # A key with nothing behind it is there and null, and may be filled.
        elif isinstance(here, dict) and here.get(index) is None:
            here[index] = {}
        here = here[index]


def list_position(entries: list[object], key: str) -> int:
    """Return the position in a list that a text names; raise ``MisplacedError`` if there is none."""
    if not key.isdecimal() or int(key) >= len(entries):
        raise MisplacedError(f"give a position in the list, from 0 to {len(entries) - 1}" if entries else "the list there is empty")
    return int(key)


class JobModel(StrictModel):
    """Base class of jobs: knows the job file's folder, and whether the release is temporary."""

    _folder: Path = PrivateAttr(default_factory=Path.cwd)
    _is_scratch: bool = PrivateAttr(default=False)

    def model_post_init(self, context: Any) -> None:
        """Store the job file's folder and the scratch flag from the validation context.

        The context is ``{"folder": Path, "scratch": bool}``; without one the folder is the current one.
        """
        if isinstance(context, Mapping) and "folder" in context:
            self._is_scratch = bool(context.get("scratch"))
            self._folder = Path(os.path.abspath(context["folder"]))  # noqa: PTH100 - Path.resolve would follow links

    @property
    def folder(self) -> Path:
        """Absolute path of the job file's folder."""
        return self._folder

    @property
    def is_scratch(self) -> bool:
        """Whether the program removes the release after use; it is then not compared with other releases."""
        return self._is_scratch


Model = TypeVar("Model", bound=JobModel)


def read_job(
    model: type[Model], version: int, path: Path | GivenJob, overrides: Sequence[str], between: Callable[[dict[str, Any]], list[str]]
) -> Model:
    """Return the validated job of a YAML file with settings replaced, or raise ``JobError``.

    Args:
        model: The kind of job.
        version: Its version, for the message on a file that is no mapping.
        path: The job file, or what a program gives in its place.
        overrides: Settings such as ``privacy.k=10`` or ``columns.quasi_identifiers.0.name=age``; the value is read as YAML.
        between: Returns what does not fit between parts of the job. It is asked before the models read the parts, because what is wrong
            with one part would else hide that.
    """
    data, faults = _content(path)
    if data is None:
        raise JobError(str(path), faults or [f"the job must be a mapping (key: value), as in version: {version}"])
    faults += apply_overrides(data, overrides)
    faults += between(data)
    job = None
    place = {"folder": path.folder, "scratch": path.scratch} if isinstance(path, GivenJob) else {"folder": path.parent}
    try:
        job = model.model_validate(data, context=place)
    except ValidationError as error:
        faults += fault_lines(error.errors(include_url=False), model, data)
    if faults or job is None:
        # The models find some of these a second time.
        raise JobError(str(path), with_causing_overrides(list(dict.fromkeys(faults)), overrides, data))
    return job


def _content(path: Path | GivenJob) -> tuple[dict[str, Any] | None, list[str]]:
    """Return the mapping in a job file, or None, and the faults of its text."""
    text, faults = (path.text, []) if isinstance(path, GivenJob) else read_text(path)
    data, unread = parse(text) if not faults else (None, [])
    return data if isinstance(data, dict) else None, faults + unread


def is_of_tables(path: Path | GivenJob, overrides: Sequence[str] = ()) -> bool:
    """Return whether a job file, with settings replaced, is a job of several tables.

    False for a file that cannot be read; loading it reports the faults.
    """
    # Only an escape could spell the key in another way. So most jobs of one table are not read a second time.
    data = _mapping_of(path, overrides, ("tables", "\\"))
    # With a source or columns of its own it is a job of one table, whose version is wrong.
    return data is not None and names_tables(data) and ("tables" in data or not _OF_ONE & data.keys())


def is_of_one_table(path: Path | GivenJob, overrides: Sequence[str]) -> bool:
    """Return whether a job file, with settings replaced, is a job of one table; False if unreadable."""
    data = _mapping_of(path, overrides, ("",))
    return data is not None and "tables" not in data and bool(_OF_ONE & data.keys())


_OF_ONE = {"source", "columns"}


def _mapping_of(path: Path | GivenJob, overrides: Sequence[str], parts: Sequence[str]) -> dict[str, Any] | None:
    """Return a job file's mapping with settings replaced; None if none or if no part is in its texts."""
    text, faults = (path.text, []) if isinstance(path, GivenJob) else read_text(path)
    if faults or not any(part in said for part in parts for said in (text, *overrides)):
        return None
    data, _ = parse(text)
    if not isinstance(data, dict):
        return None
    apply_overrides(data, overrides)
    return data


def names_tables(data: Mapping[str, Any]) -> bool:
    """Return whether a job names the version of several tables, as a number or in quotes."""
    version = data.get("version")
    return type(version) in {int, str} and str(version) == str(TABLES_VERSION)
