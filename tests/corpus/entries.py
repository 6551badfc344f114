"""A corpus of jobs, hierarchies and sources that are wrong or at the edge, each with how a run of it must end and why.

An entry is a YAML file: ``why`` in a sentence, ``code`` (the exit code), ``said`` (words of the message), and what it changes of a sound
job: ``job`` (parts of it by dotted key; null takes one away), ``raw`` (the job's text instead), ``files`` (text by name; ``hex:`` before
bytes).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

CANARY = "CANARY"
"""Stands in every text of the source and its hierarchy, so that a message that tells one is found."""
SEXES = [f"{CANARY}-f", f"{CANARY}-m"]
SOURCE = "person,age,zip,sex,disease\n" + "".join(
    f"{number},{20 + number // 8},{CANARY}{number // 12},{SEXES[number // 4 % 2]},{CANARY}-{number % 3}\n" for number in range(48)
)
JOB: dict[str, Any] = {
    "version": 1,
    "name": "people",
    "source": {"path": "in.csv", "types": {"person": "integer", "age": "integer"}},
    "columns": {
        "identifiers": ["person"],
        "quasi_identifiers": [
            {"name": "age", "hierarchy": {"widths": [1, 5, 10]}},
            {"name": "zip", "hierarchy": {"prefix": [6, 3]}},
            {"name": "sex", "hierarchy": {"csv": "sex.csv"}},
        ],
        "sensitive": ["disease"],
    },
    "privacy": {"k": 3},
    "suppression": {"limit": 0.05},
    "method": {"name": "skald"},
    "memory": "256MB",
    "target": "releases",
}


@dataclass(frozen=True)
class Entry:
    """One input, and how a run of it must end."""

    name: str
    why: str
    code: int
    said: str = ""
    job: dict[str, Any] = field(default_factory=dict)
    raw: str | None = None
    files: dict[str, str] = field(default_factory=dict)

    def write(self, folder: Path) -> None:
        """Write job, source and hierarchy into a folder that is not there yet."""
        folder.mkdir(parents=True)
        written = {"in.csv": SOURCE, "sex.csv": "".join(f"{sex};*\n" for sex in SEXES)} | self.files
        written["job.yaml"] = self.raw if self.raw is not None else yaml.safe_dump(self._job(), sort_keys=False)
        for name, text in written.items():
            content = bytes.fromhex(text.removeprefix("hex:")) if text.startswith("hex:") else text.encode()
            (folder / name).write_bytes(content)

    def _job(self) -> dict[str, Any]:
        job: dict[str, Any] = yaml.safe_load(yaml.safe_dump(JOB))
        for key, value in self.job.items():
            *parts, last = key.split(".")
            place: Any = job
            for part in parts:
                place = place[int(part)] if part.isdigit() else place.setdefault(part, {})
            if value is None:
                place.pop(last, None)
            else:
                place[int(last) if last.isdigit() else last] = value
        return job

    def fault(self, code: int, said: str, folder: Path) -> str:
        """Return what is wrong with how a run of it ended, if anything is."""
        words = " ".join(said.split())
        if code != self.code:
            return f"ended with {code} and not with {self.code}: {words[-300:]}"
        if self.said not in words:
            return f"did not say '{self.said}': {words[-300:]}"
        if CANARY in said or "Traceback" in said:
            return "told a value or a traceback"
        return "published in spite of it" if code and list(folder.glob("releases/people-*")) else ""


def corpus() -> list[Entry]:
    """Return all entries, by name."""
    folder = Path(__file__).parent
    return [Entry(path.stem, **yaml.safe_load(path.read_text())) for path in sorted(folder.glob("*.yaml"))]
