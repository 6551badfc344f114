"""What the buttons of the page do: each changes the job file, or starts what takes long, and says where to look next."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from urllib.parse import quote

from flows.studio.state import Opened, PageMessage, Studio
from schemas.errors.base import JobError, StorageError
from schemas.job.source import suffix
from tasks.studio.changes import first_hierarchy, number_of, qid_way, with_choices, with_levels, with_node, with_role
from tasks.studio.job_text import with_value
from tasks.studio.listed_groups import (
    digest_of_rows,
    draft_groups,
    import_groups,
    lines_of_rare,
    listed_groups,
    rows_of_listed_hierarchy,
    with_moved_values,
    write_groups,
)

Form = Mapping[str, list[str]]
JOBS = (".yaml", ".yml")
MOST_QUERIES = 1_000


def one(form: Form, key: str) -> str:
    """Return a field of a form, empty if it is not there."""
    values = form.get(key, [])
    return values[0] if values else ""


def current(studio: Studio, form: Form) -> Opened:
    """Return the job file, if it is what the page showed.

    Raises:
        StorageError: it is another by now.
    """
    opened = studio.opened()
    if one(form, "stamp") != opened.stamp:
        raise StorageError("The job file was changed elsewhere meanwhile. This page shows it as it is now; do it again.")
    return opened


def open_path(studio: Studio, form: Form) -> str:
    """Open a job file, or drafts one from a source.

    Raises:
        StorageError: nothing is named, or something is worked on already.
    """
    named = one(form, "path").strip()
    if not named:
        raise StorageError("Name a source or a job file.")
    return open_named(studio, (named,), Path.cwd())


def open_named(studio: Studio, names: tuple[str, ...], folder: Path) -> str:
    """Open a job file, or drafts one from sources into a folder.

    Raises:
        StorageError: something is worked on already.
    """
    path = Path(names[0]).expanduser()
    if len(names) == 1 and suffix(path.name) in JOBS:
        if not path.is_file():
            raise StorageError("There is no job file of that name. Give its path, absolute or from where the studio was started.")
        studio.path = path.absolute()
        return "/columns"
    out = next(file for number in count(1) if not (file := folder / f"job{f'-{number}' if number > 1 else ''}.yaml").exists())
    studio.works.start("draft", "", source=[str(Path(name).expanduser()) if "://" not in name else name for name in names], out=str(out))
    return "/"


def change_role(studio: Studio, form: Form) -> str:
    """Give a column another role.

    Raises:
        SkaldError: the file was changed elsewhere, or would be no job that the policy allows.
    """
    opened = current(studio, form)
    sample = studio.sample(opened)
    name = one(form, "column")
    profile = next((each for each in sample.profiles if each.name == name), None)
    if profile is None:
        raise JobError("The page", ["there is no such column any more; load the page again"])
    studio.save(opened, with_role(opened.text, profile, one(form, "role")))
    return f"/columns#column-{sample.names.index(name)}"


def change_text(studio: Studio, form: Form) -> str:
    """Write the job file as its text was edited.

    Raises:
        SkaldError: the file was changed elsewhere, or would be no job that the policy allows.
    """
    opened = studio.opened()
    shown = one(form, "text").replace("\r\n", "\n")
    if "\r\n" in opened.text:
        shown = shown.replace("\n", "\r\n")
    studio.save(opened, studio.edited_text(opened, shown, one(form, "view")))
    studio.messages.append(PageMessage("good", "The job file is saved."))
    return back(form)


def change_choices(studio: Studio, form: Form) -> str:
    """Change what the job promises, and by which method.

    Raises:
        SkaldError: the file was changed elsewhere, or would be no job that the policy allows.
    """
    opened = current(studio, form)
    studio.save(opened, with_choices(opened.text, studio.job(opened), form))
    return "/choices"


def take_node(studio: Studio, form: Form) -> str:
    """Let the job publish the levels of a node.

    Raises:
        SkaldError: the file was changed elsewhere, or would be no job that the policy allows.
    """
    opened = current(studio, form)
    try:
        node, share = [int(level) for level in one(form, "node").split(",")], float(one(form, "suppressed"))
    except ValueError:
        raise JobError("The page", ["that is no node; load the page again"]) from None
    text, limit = with_node(opened.text, studio.job(opened), node, share)
    studio.save(opened, text)
    more = f" and may leave out {limit:%} of the records, as this node does" if limit is not None else ""
    studio.messages.append(PageMessage("good", f"The job now names these levels{more}."))
    return "/choices"


def take_method(studio: Studio, form: Form) -> str:
    """Let the job use a method as it was tried; or look for levels, where it names some.

    Raises:
        SkaldError: the file was changed elsewhere, or would be no job that the policy allows.
    """
    opened = current(studio, form)
    name = one(form, "method")
    said: dict[str, object] = {"name": name}
    if name == "mondrian" and one(form, "score") == "ncp":
        said["score"] = "ncp"
    studio.save(opened, with_value(opened.text, ("method",), said))
    return "/choices"


def change_steps(studio: Studio, form: Form) -> str:
    """Change widths, prefixes or units of a hierarchy.

    Raises:
        SkaldError: the file was changed elsewhere, or would be no job that the policy allows.
    """
    opened, name = current(studio, form), one(form, "column")
    studio.save(opened, with_levels(opened.text, studio.job(opened), name, one(form, "kind"), form))
    return at_column(name)


def change_kind(studio: Studio, form: Form) -> str:
    """Give a quasi-identifier a first hierarchy of another kind: what fits its type, or a list of groups.

    Raises:
        SkaldError: the file was changed elsewhere, or would be no job that the policy allows.
    """
    opened, name = current(studio, form), one(form, "column")
    job = studio.job(opened)
    way = (*qid_way(job, name), "hierarchy")
    sample = studio.sample(opened)
    if one(form, "kind") != "list":
        profile = next(each for each in sample.profiles if each.name == name)
        studio.save(opened, with_value(opened.text, way, first_hierarchy(profile)))
    elif sample.is_complete and sample.people == sample.records:
        steps = job.columns.normalised.get(name, [])
        studio.save(opened, with_value(opened.text, way, draft_groups(job, name, sample.domain(name, steps))))
    else:
        studio.works.start("groups", opened.stamp, job=str(opened.path), column=name)
    return at_column(name)


def move_values(studio: Studio, form: Form) -> str:
    """Move values of a list into another group.

    Raises:
        SkaldError: the file was changed elsewhere, or would be no job that the policy allows.
    """
    opened, name = current(studio, form), one(form, "column")
    job, sample = studio.job(opened), studio.sample(opened)
    way = qid_way(job, name)
    spec = job.columns.quasi_identifiers[int(way[2])].hierarchy
    rows = rows_of_listed_hierarchy(job, name, spec)
    if one(form, "list") != digest_of_rows(rows):
        raise StorageError("The list of groups was changed elsewhere meanwhile. This page shows it as it is now; do it again.")
    shown = listed_groups(job, name, spec, sample, studio.least(job))
    chips = [chip.line for group in shown.groups for chip in group.chips]
    lines = [int(number_of(line)) for line in form.get("line", [])]
    for group in form.get("rare", []):
        lines += lines_of_rare(rows, int(number_of(group)), chips)
    to = one(form, "to")
    changed = with_moved_values(rows, lines, int(number_of(to)) if to not in {"", "new"} else None, one(form, "label").strip())
    said = write_groups(job, name, spec, changed)
    if said is not None:
        studio.save(opened, with_value(opened.text, (*way, "hierarchy"), said))
    return at_column(name)


def take_file(studio: Studio, form: Form) -> str:
    """Take a file of groups that is there, such as one of ARX.

    Raises:
        SkaldError: the file was changed elsewhere, or would be no job that the policy allows.
    """
    opened, name = current(studio, form), one(form, "column")
    job = studio.job(opened)
    said = import_groups(job, name, one(form, "path").strip(), studio.sample(opened))
    studio.save(opened, with_value(opened.text, (*qid_way(job, name), "hierarchy"), said))
    return at_column(name)


def start_work(studio: Studio, form: Form) -> str:
    """Start what takes long: the run, the risk or the front of all records, missing values of a list, the utility of a release.

    Raises:
        SkaldError: the file was changed elsewhere, or would be no job that the policy allows.
    """
    opened, kind = current(studio, form), one(form, "kind")
    job = str(opened.path)
    match kind:
        case "run":
            studio.works.start("run", opened.stamp, job=job, direct=one(form, "prefect") != "yes")
        case "plan" | "front":
            studio.works.start(kind, opened.stamp, job=job)
        case "complete":
            studio.works.start("complete", opened.stamp, job=job, column=one(form, "column"))
        case "utility":
            release = studio.job(opened).target_path / Path(one(form, "release")).name
            studio.works.start("utility", opened.stamp, job=job, release=str(release), queries=MOST_QUERIES)
        case _:
            raise JobError("The page", ["there is no such work; load the page again"])
    return back(form)


def cancel_work(studio: Studio, form: Form) -> str:
    """Cancel what is worked on."""
    studio.works.cancel()
    return back(form)


def back(form: Form) -> str:
    """Return the page from which a form was sent, which is one of ours."""
    page = one(form, "page")
    return page if page in {"/", "/columns", "/choices", "/run", "/compare"} or page.startswith(("/hierarchies?", "/compare?")) else "/"


def at_column(name: str) -> str:
    """Return the page of a column's hierarchy."""
    return f"/hierarchies?column={quote(name, safe='')}"


ACTIONS: dict[str, Callable[[Studio, Form], str]] = {
    "open": open_path,
    "role": change_role,
    "text": change_text,
    "choices": change_choices,
    "node": take_node,
    "method": take_method,
    "steps": change_steps,
    "kind": change_kind,
    "move": move_values,
    "file": take_file,
    "work": start_work,
    "cancel": cancel_work,
}
"""By the last part of their address."""
