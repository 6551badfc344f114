"""What an attack is, and how it runs the product: as a user does, from the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Attack:
    """One attack on releases of made data.

    Attributes:
        part: The promise that it tries to break; attacks of one promise stand together in the table.
        name: What the attacker does, in a few words.
        before: What the attacker got from version 0.1.0 with the same data.
        play: Makes data and releases in an empty folder, attacks them, and returns what the attacker gets now.
    """

    part: str
    name: str
    before: str
    play: Callable[[Path], str]


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code, and all that it printed."""

    code: int
    text: str
    manifest: Mapping[str, Any]
    """The manifest of the release that a run has published; empty if it has published none."""

    @property
    def last(self) -> str:
        """The last line that the command printed."""
        return (self.text.strip().splitlines() or [""])[-1]


def skald(folder: Path, *arguments: object, **environment: str) -> Ended:
    """Run a command in a folder, without Prefect.

    Args:
        folder: Where the command runs.
        *arguments: The command and what belongs to it, without ``skald``.
        **environment: Variables beside those of this process.
    """
    command = [sys.executable, "-m", "flows.cli", *map(str, arguments)]
    variables = os.environ | {"PYTHONPATH": str(ROOT), "SKALD_DIRECT": "1", "COLUMNS": "200"} | environment
    done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)
    return Ended(done.returncode, done.stderr + done.stdout, {})


def run(folder: Path, job: Mapping[str, Any], name: str = "job", **environment: str) -> Ended:
    """Write a job into a folder and runs it.

    Args:
        folder: Where the job file, its work folder and, unless the job says otherwise, its target are.
        job: The job, as its YAML would be read; ``version``, ``name``, ``memory`` and ``target`` have defaults.
        name: The name of the job and of its file.
        **environment: Variables beside those of this process.
    """
    whole = {"version": 1, "name": name, "memory": "512MB", "target": f"releases/{name}", **job}
    (folder / f"{name}.yaml").write_text(yaml.safe_dump(whole, sort_keys=False))
    ended = skald(folder, "run", f"{name}.yaml", "--direct", **environment)
    current = folder / whole["target"] / "CURRENT"
    if ended.code or not current.is_file():
        return ended
    return Ended(ended.code, ended.text, json.loads((current.parent / current.read_text().strip() / "manifest.json").read_text()))
