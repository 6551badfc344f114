"""Single settings that replace those of the job file: ``privacy.k=10``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from schemas.errors.signals import MisplacedError
from schemas.reading.faults import Loc, place
from schemas.reading.yaml_reading import parse


def apply_overrides(data: dict[str, object], overrides: Sequence[str]) -> list[str]:
    """Puts the settings into ``data``, in order, and returns what is wrong with them.

    A key that does not exist is put there all the same: whether it may is the job's affair, which knows what it resembles.
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
        faults += [f"--set {place(loc)}: {sentence}" for sentence in wrong]
        try:
            put(data, keys, value)
        except MisplacedError as error:
            faults.append(f"--set {place(loc)}: {error}")
    return faults


def with_culprits(faults: Sequence[str], overrides: Sequence[str], data: object) -> list[str]:
    """Returns the faults of a job, those that lie where a setting was replaced with the setting's key behind them.

    Args:
        faults: Sentences, each with its place in front.
        overrides: The settings.
        data: The job with the settings in it, for the names of quasi-identifiers.
    """
    keys = dict.fromkeys(override.partition("=")[0].strip() for override in overrides)
    places = {key: place(tuple(int(part) if part.isdecimal() else part for part in key.split(".")), data) for key in keys}
    return [fault + next((f" (given by --set {at})" for at in places.values() if _is_at(fault, at)), "") for fault in faults]


def _is_at(fault: str, at: str) -> bool:
    """Tells whether the place in front of a fault is that of a setting or below it; above it the fault must name the setting's key."""
    if fault.startswith((f"{at}:", f"{at}.", f"{at}[")):
        return True
    told, _, said = fault.partition(": ")
    return at.startswith((f"{told}.", f"{told}[")) and (f"'{at.rpartition('.')[2]}'" in said or said.startswith("unknown key"))


def put(data: dict[str, object], keys: list[str], value: object) -> None:
    """Sets one entry of nested mappings and lists; mappings that are missing on the way are made.

    Raises:
        MisplacedError: the way leads through a scalar, or past the end of a list.
    """
    here: Any = data
    for step, key in enumerate(keys):
        last = step == len(keys) - 1
        if isinstance(here, list):
            index: Any = entry(here, key)
        elif isinstance(here, dict):
            index = key
        else:
            raise MisplacedError(f"{place(tuple(keys[:step]))} holds a single value and no further keys")
        if last:
            here[index] = value
        # A key with nothing behind it is there and null, and may be filled.
        elif isinstance(here, dict) and here.get(index) is None:
            here[index] = {}
        here = here[index]


def entry(entries: list[object], key: str) -> int:
    """Returns the position that ``key`` names in a list.

    Raises:
        MisplacedError: no number, or past the end.
    """
    if not key.isdecimal() or int(key) >= len(entries):
        raise MisplacedError(f"give a position in the list, from 0 to {len(entries) - 1}" if entries else "the list there is empty")
    return int(key)
