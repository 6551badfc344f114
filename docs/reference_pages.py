"""The pages of the reference, made from the code: every key of a job, every command, every field of a manifest."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import typer
from pydantic import BaseModel

from flows.cli import app
from schemas.job.formats import FORMATS, SourceFormat
from schemas.job.identifiers import ColumnPublication
from schemas.job.method import METHODS
from schemas.job.policy import Policy
from schemas.job.privacy import SUPPRESSIONS, AttackBasis, AttackFigures
from schemas.reading.registry import Schemas
from schemas.registry.hierarchy_kinds import HIERARCHIES
from schemas.registry.privacy_kinds import DISTANCE_SCHEMAS, DIVERSITY_SCHEMAS
from schemas.registry.treatment_kinds import TREATMENTS
from schemas.relational.manifest import ReleasedPersons, ReleasedTable, TablesLoss, TablesManifest
from schemas.relational.tables_job import jobs_json_schema
from schemas.release.figures import Together
from schemas.release.increments import Increment, Joined, Overlap, PersonsOverlap
from schemas.release.manifest import Manifest
from schemas.release.terms import Band, LatticeFigures, QidTerms, Terms

Schema = Mapping[str, Any]
BOUNDS = {"minimum": "{} or more", "maximum": "{} or less", "exclusiveMinimum": "more than {}", "minItems": "{} at least", "pattern": ""}
NOTE = "% Made from the code when the documentation is built; changes here are lost.\n\n"


def places() -> dict[str, str]:
    """Return where each model stands in a job."""
    return {
        "Job": "The whole job",
        "PrivacyFloor": "privacy",
        "SuppressionCeiling": "suppression",
        "Source": "source",
        "Connection": "source.connection",
        "Columns": "columns",
        "QuasiIdentifier": "columns.quasi_identifiers",
        "Privacy": "privacy",
        "Recursive": "privacy.l: recursive: its numbers",
        **{model.__name__: f"privacy.l: {name}" for name, model in DIVERSITY_SCHEMAS.items()},
        **{model.__name__: f"privacy.t: {name} distance" for name, model in DISTANCE_SCHEMAS.items()},
        "Suppression": "suppression",
        "Output": "output",
        "Fragments": "method: fragments",
        "Identifier": "columns.identifiers",
        "Secret": "key, vault",
        "TablesJob": "A job of several tables",
        "TableSpec": "tables: a table",
        "RowsBound": "tables: rows",
        "TableColumns": "tables: columns",
        "TablesPrivacy": "privacy, of several tables",
        "KnownRows": "privacy.knows, of several tables",
        "TablesSuppression": "suppression, of several tables",
        "TablesMethod": "method: skald, of several tables",
        "PersonsMethod": "method: mondrian, of several tables",
        **{f"{kind.title()}Settings": f"treatment: {kind}: settings" for kind in TREATMENTS},
        **{model.__name__: f"treatment: {kind}" for kind, model in Schemas(TREATMENTS).items()},
        **{model.__name__: f"hierarchy: {kind}" for kind, model in Schemas(HIERARCHIES).items()},
        **{model.__name__: f"method: {name}" for name, model in Schemas(METHODS).items()},
    }


def write_pages(folder: Path) -> None:
    """Write the reference into a folder; a page that is as it should be is not touched, so that it is not built again."""
    schema = jobs_json_schema()
    pages = {
        "job.md": job_page(schema),
        "commands.md": commands_page(),
        "manifest.md": manifest_page(),
        "policy.md": policy_page(),
        "job.schema.json": json.dumps(schema, indent=2) + "\n",
    }
    folder.mkdir(exist_ok=True)
    for name, text in pages.items():
        path = folder / name
        if not path.is_file() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")


def job_page(schema: Schema | None = None) -> str:
    """Return the page of all keys of a job of one table, and then of those that a job of several tables adds."""
    definitions = (schema or jobs_json_schema())["$defs"]
    parts = [
        NOTE,
        "# The job file\n\n",
        "Every key that a job may have. A key without a default must be given, unless its text says what happens otherwise.\n"
        "Unknown keys are refused with the nearest right spelling. A job of several tables (`version: 2`) has keys of its own,\n"
        "in the sections from [that job](#job-tablesjob) on.\n\n"
        "Editors that know JSON Schema complete and check a job as it is typed: write\n"
        "`skald schema --to job.schema.json` and put `# yaml-language-server: $schema=job.schema.json` on the first line of the job\n"
        "({download}`the same file <job.schema.json>`).\n\n",
    ]
    of_one = _in_order({"$ref": "#/$defs/Job", "$defs": definitions})
    for name in dict.fromkeys([*of_one, *_in_order({"$ref": "#/$defs/TablesJob", "$defs": definitions})]):
        parts += _section(name, definitions[name], places().get(name, name))
        parts += [text() for model, text in NAMED.items() if model == name]
    return "".join(parts)


def _formats() -> str:
    """Return the formats of a source."""
    rows = [
        (f"`{one.name}`", one.words, ", ".join(f"`{suffix}`" for suffix in one.suffixes), ", ".join(f"`{key}`" for key in _keys_of(one)))
        for one in FORMATS.values()
    ]
    return _table("source: format", ("format", "what the source is", "suffixes that tell it", "keys that not all formats take"), rows)


def _keys_of(one: SourceFormat) -> list[str]:
    return [*dict.fromkeys((*one.takes, *one.of_folders))]


def _suppressions() -> str:
    """Return what may become of suppressed records."""
    rows = [(f"`{one.name}`", _plain(one.words).replace("*", r"\*")) for one in SUPPRESSIONS.values()]
    return _table("suppression: treatment", ("treatment", "suppressed records are"), rows)


def _table(title: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return f"## {title}\n\n" + "".join(f"| {' | '.join(line)} |\n" for line in lines) + "\n"


NAMED: Mapping[str, Callable[[], str]] = {"Source": _formats, "Suppression": _suppressions}
"""What follows a model that names entries without a model of their own."""


def _in_order(schema: Schema) -> list[str]:
    """Return the models of a job in the order in which its keys lead to them."""
    found: list[str] = []

    def walk(node: object) -> None:
        if isinstance(node, Mapping):
            name = str(node.get("$ref", "")).rpartition("/")[2]
            if name and name not in found:
                found.append(name)
                walk(schema["$defs"][name])
            for key, below in node.items():
                if key not in {"$defs", "discriminator"}:
                    walk(below)
        elif isinstance(node, list):
            for below in node:
                walk(below)

    walk(schema)
    return found


def _section(name: str, schema: Schema, title: str) -> Iterator[str]:
    yield f"(job-{name.lower()})=\n## {title}\n\n{_plain(schema['description'])}\n\n"
    yield "| key | takes | default | meaning |\n| --- | --- | --- | --- |\n"
    for key, one in schema["properties"].items():
        yield f"| `{key}` | {_takes(one)} | {_default(one)} | {_plain(one.get('description', ''))} |\n"
    yield "\n"


def _default(one: Schema) -> str:
    return f"`{json.dumps(one['default'])}`" if "default" in one and one["default"] is not None and "const" not in one else ""


def _takes(one: Schema) -> str:
    """Return what a key takes, in words and links."""
    if "$ref" in one:
        name = one["$ref"].rpartition("/")[2]
        return f"[{places().get(name, name)}](#job-{name.lower()})"
    if choices := one.get("anyOf") or one.get("oneOf"):
        return " or ".join(dict.fromkeys(_takes(choice) for choice in choices if choice.get("type") != "null"))
    if values := one.get("enum") or [one[key] for key in ("const",) if key in one]:
        return ", ".join(f"`{value}`" for value in values)
    if one.get("type") == "array":
        return f"list of {_takes(one.get('items', {}))}"
    if isinstance(one.get("additionalProperties"), Mapping):
        return f"a mapping, for each name {_takes(one['additionalProperties'])}"
    words = {"string": "text", "object": "a mapping"}.get(str(one.get("type")), str(one.get("type", "")))
    bounds = [how.format(f"{one[bound]:,}") for bound, how in BOUNDS.items() if how and bound in one]
    return ", ".join([words, *bounds])


def _plain(text: str) -> str:
    """Return a docstring as one line of Markdown, without the place of a paper in the developers' folder."""
    text = re.sub(r"\s*\(papers/[^)]*\)", "", " ".join(text.split()))
    return re.sub(r"([|<])", r"\\\1", text.replace("``", "`"))


def _single(group: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each command by its name, those of a group one by one."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _single(command, f"{before}{name} ")
        else:
            yield f"{before}{name}", command


def commands_page() -> str:
    """Return the page of all commands."""
    group = typer.main.get_command(app)
    parts = [NOTE, "# Commands\n\n", EXITS]
    for name, command in _single(group):
        parts.append(f"## skald {name}\n\n{_plain(command.help)}\n\n| argument | default | meaning |\n| --- | --- | --- |\n")
        for one in (one for one in command.params if not getattr(one, "hidden", False)):
            spelt = one.name.upper() if one.param_type_name == "argument" else " ".join(one.opts)
            value = "" if one.param_type_name == "argument" or getattr(one, "is_flag", False) else f" {one.metavar or one.name.upper()}"
            given = one.default is not None and one.default is not False and one.default != ()
            parts.append(f"| `{spelt}{value}` | {f'`{one.default}`' if given else ''} | {_plain(one.help or '')} |\n")
        parts.append("\n")
    return "".join(parts)


EXITS = """Exit codes are the same for all commands:

| code | meaning |
| --- | --- |
| 0 | published, or done as asked |
| 2 | the job or the data are wrong |
| 3 | what the job promises cannot be kept on these data |
| 4 | files do not keep what was promised |
| 5 | nothing contradicts the files, but k, l or t could not be counted here |
| 1 | a fault of ours |

Nothing is published unless the code is 0. Messages name files, columns and counts, never a cell value.

"""


def policy_page() -> str:
    """Return the page of all keys of a policy."""
    schema = Policy.model_json_schema()
    head = "# The policy\n\nEvery key that the file may have that `SKALD_POLICY` names; what it is for: {doc}`../howto/policy`.\n\n"
    parts = [NOTE, head, *_section("Policy", schema, "The whole policy")]
    for name in _in_order(schema):
        parts += _section(name, schema["$defs"][name], places().get(name, name))
    return "".join(parts)


def manifest_page() -> str:
    """Return the page of a manifest's fields."""
    head = "# The manifest\n\n`manifest.json` says what a release is and what was measured: counts, names, digests, no cell value.\n\n"
    of_one = (
        Manifest,
        Terms,
        QidTerms,
        LatticeFigures,
        Band,
        Increment,
        Overlap,
        Joined,
        Together,
        ColumnPublication,
        AttackFigures,
        AttackBasis,
    )
    models = (*of_one, TablesManifest, ReleasedPersons, ReleasedTable, TablesLoss, PersonsOverlap)
    return NOTE + head + "".join(_fields(model) for model in models)


def _fields(model: type[BaseModel]) -> str:
    text = inspect.getdoc(model) or ""
    summary, _, attributes = text.partition("Attributes:\n")
    rows = re.findall(r"^ {4}(\S[^:\n]*): ((?:.|\n {8})+)", attributes, re.M)
    table = "".join(f"| {', '.join(f'`{name.strip()}`' for name in names.split(','))} | {_plain(words)} |\n" for names, words in rows)
    return f"## {model.__name__}\n\n{_plain(summary)}\n\n| field | meaning |\n| --- | --- |\n{table}\n"
