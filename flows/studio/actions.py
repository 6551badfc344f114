"""Actions of the studio page's buttons.

Each changes the job file or starts long work, and returns the address of the next page.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from glob import escape, glob
from itertools import count
from pathlib import Path
from urllib.parse import quote

from flows.studio.state import Opened, PageMessage, Studio
from schemas.errors.base import JobError, StorageError, shown_path
from schemas.job.source import suffix
from tasks.studio.changes import first_hierarchy, number_of, qid_path, with_choices, with_levels, with_node, with_role
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


def form_field(form: Form, key: str) -> str:
    """Return the first value of a form field, or an empty text."""
    values = form.get(key, [])
    return values[0] if values else ""


def current_job_file(studio: Studio, form: Form) -> Opened:
    """Return the job file as it is now; raise ``StorageError`` if it changed since the page was shown.

    Raises:
        StorageError: it is another by now.
    """
    opened = studio.read_job_file()
    if form_field(form, "stamp") != opened.stamp:
        raise StorageError("The job file was changed elsewhere meanwhile. This page shows it as it is now; do it again.")
    return opened


def open_path(studio: Studio, form: Form) -> str:
    """Open the job file that the form names, or start to draft one from a source; return the next address.

    Raises:
        StorageError: nothing is named, or something is worked on already.
    """
    named = form_field(form, "path").strip()
    if not named:
        raise StorageError("Name a source or a job file.")
    return open_named(studio, (named,), Path.cwd())


def open_named(studio: Studio, names: tuple[str, ...], folder: Path) -> str:
    """Open a job file, or start to draft one from sources in a folder; return the next page's address.

    Raises:
        StorageError: something is worked on already, or there is no such file.
    """
    path = Path(names[0]).expanduser()
    if len(names) == 1 and suffix(path.name) in JOBS:
        if not path.is_file():
            raise StorageError("There is no job file of that name. Give its path, absolute or from where the studio was started.")
        studio.path = path.absolute()
        return "/columns"
    for name in (name for name in names if "://" not in name):
        place = str(Path(name).expanduser())
        if not (glob(escape(place)) or glob(place, recursive=True)):  # noqa: PTH207 - a pattern may begin with any folder
            raise StorageError(f"There is nothing at '{shown_path(name)}'. Give its path, absolute or from where the studio was started.")
    out = next(file for number in count(1) if not (file := folder / f"job{f'-{number}' if number > 1 else ''}.yaml").exists())
    studio.works.start("draft", "", source=[str(Path(name).expanduser()) if "://" not in name else name for name in names], out=str(out))
    return "/"


def change_role(studio: Studio, form: Form) -> str:
    """Set the role of a column in the job file; return the address of the next page.

    Raises:
        SkaldError: the file was changed elsewhere, or would be no job that the policy allows.
    """
    opened = current_job_file(studio, form)
    sample = studio.sample(opened)
    name = form_field(form, "column")
    profile = next((each for each in sample.profiles if each.name == name), None)
    if profile is None:
        raise JobError("The page", ["there is no such column any more; load the page again"])
    studio.save(opened, with_role(opened.text, profile, form_field(form, "role")))
    return f"/columns#column-{sample.names.index(name)}"


def change_text(studio: Studio, form: Form) -> str:
    """Save the edited job file; return the address of the page that sent the form; raise if it is unfit.

    Raises:
        SkaldError: the file was changed elsewhere, or would be no job that the policy allows.
    """
    opened = studio.read_job_file()
    shown = form_field(form, "text").replace("\r\n", "\n")
    if "\r\n" in opened.text:
        shown = shown.replace("\n", "\r\n")
    studio.save(opened, studio.edited_text(opened, shown, form_field(form, "view")))
    studio.messages.append(PageMessage("good", "The job file is saved."))
    return page_of_form(form)


def change_choices(studio: Studio, form: Form) -> str:
    """Set the job's privacy models and method from the form; return the next page's address.

    Raises:
        SkaldError: the file was changed elsewhere, or would be no job that the policy allows.
    """
    opened = current_job_file(studio, form)
    studio.save(opened, with_choices(opened.text, studio.job(opened), form))
    return "/choices"


def set_node(studio: Studio, form: Form) -> str:
    """Set a lattice node's levels, and a limit that allows it, in the job file; return the next address.

    Raises:
        SkaldError: the file was changed elsewhere, or would be no job that the policy allows.
    """
    opened = current_job_file(studio, form)
    try:
        node, share = [int(level) for level in form_field(form, "node").split(",")], float(form_field(form, "suppressed"))
    except ValueError:
        raise JobError("The page", ["that is no node; load the page again"]) from None
    text, limit = with_node(opened.text, studio.job(opened), node, share)
    studio.save(opened, text)
    more = f" and may leave out {100 * limit:g}% of the records, as this node does" if limit is not None else ""
    studio.messages.append(PageMessage("good", f"The job now names these levels{more}."))
    return "/choices"


def set_method(studio: Studio, form: Form) -> str:
    """Set the method, without its other settings, in the job file; return the next page's address.

    Of Mondrian the score by NCP is kept, if the method was tried with it.

    Raises:
        SkaldError: the file was changed elsewhere, or would be no job that the policy allows.
    """
    opened = current_job_file(studio, form)
    name = form_field(form, "method")
    said: dict[str, object] = {"name": name}
    if name == "mondrian" and form_field(form, "score") == "ncp":
        said["score"] = "ncp"
    studio.save(opened, with_value(opened.text, ("method",), said))
    return "/choices"


def change_steps(studio: Studio, form: Form) -> str:
    """Set the widths, prefixes or date units of a hierarchy; return the address of its page.

    Raises:
        SkaldError: the file was changed elsewhere, or would be no job that the policy allows.
    """
    opened, name = current_job_file(studio, form), form_field(form, "column")
    studio.save(opened, with_levels(opened.text, studio.job(opened), name, form_field(form, "kind"), form))
    return hierarchy_address(name)


def change_kind(studio: Studio, form: Form) -> str:
    """Draft a column's hierarchy of another kind, at once or as work; return the address of its page.

    It fits the column's type, or is a list of groups.

    Raises:
        SkaldError: the file was changed elsewhere, or would be no job that the policy allows.
    """
    opened, name = current_job_file(studio, form), form_field(form, "column")
    job = studio.job(opened)
    way = (*qid_path(job, name), "hierarchy")
    sample = studio.sample(opened)
    if form_field(form, "kind") != "list":
        profile = next(each for each in sample.profiles if each.name == name)
        studio.save(opened, with_value(opened.text, way, first_hierarchy(profile)))
    elif sample.is_complete and sample.people == sample.records:
        steps = job.columns.normalised.get(name, [])
        studio.save(opened, with_value(opened.text, way, draft_groups(job, name, sample.domain(name, steps))))
    else:
        studio.works.start("groups", opened.stamp, job=str(opened.path), column=name)
    return hierarchy_address(name)


def move_values(studio: Studio, form: Form) -> str:
    """Move values of a listed hierarchy into another group; return the address of its page.

    Raises:
        SkaldError: the file was changed elsewhere, or would be no job that the policy allows.
    """
    opened, name = current_job_file(studio, form), form_field(form, "column")
    job, sample = studio.job(opened), studio.sample(opened)
    way = qid_path(job, name)
    spec = job.columns.quasi_identifiers[int(way[2])].hierarchy
    rows = rows_of_listed_hierarchy(job, name, spec)
    if form_field(form, "list") != digest_of_rows(rows):
        raise StorageError("The list of groups was changed elsewhere meanwhile. This page shows it as it is now; do it again.")
    shown = listed_groups(job, name, spec, sample, studio.least(job))
    chips = [chip.line for group in shown.groups for chip in group.chips]
    lines = [int(number_of(line)) for line in form.get("line", [])]
    for group in form.get("rare", []):
        lines += lines_of_rare(rows, int(number_of(group)), chips)
    to = form_field(form, "to")
    changed = with_moved_values(rows, lines, int(number_of(to)) if to not in {"", "new"} else None, form_field(form, "label").strip())
    said = write_groups(job, name, spec, changed)
    if said is not None:
        studio.save(opened, with_value(opened.text, (*way, "hierarchy"), said))
    return hierarchy_address(name)


def use_hierarchy_file(studio: Studio, form: Form) -> str:
    """Set a CSV file of groups as a column's hierarchy; return the address of its hierarchy page.

    Raises:
        SkaldError: the file was changed elsewhere, or would be no job that the policy allows.
    """
    opened, name = current_job_file(studio, form), form_field(form, "column")
    job = studio.job(opened)
    said = import_groups(job, name, form_field(form, "path").strip(), studio.sample(opened))
    studio.save(opened, with_value(opened.text, (*qid_path(job, name), "hierarchy"), said))
    return hierarchy_address(name)


def start_work(studio: Studio, form: Form) -> str:
    """Start a run, a plan or other long work in a worker process; return the next page's address.

    Other kinds are missing values of a list and the utility of a release.

    Raises:
        SkaldError: the file was changed elsewhere, or would be no job that the policy allows.
    """
    opened, kind = current_job_file(studio, form), form_field(form, "kind")
    job = str(opened.path)
    match kind:
        case "run":
            studio.works.start("run", opened.stamp, job=job, direct=form_field(form, "prefect") != "yes")
        case "plan" | "front":
            studio.works.start(kind, opened.stamp, job=job)
        case "complete":
            studio.works.start("complete", opened.stamp, job=job, column=form_field(form, "column"))
        case "utility":
            release = studio.job(opened).target_path / Path(form_field(form, "release")).name
            studio.works.start("utility", opened.stamp, job=job, release=str(release), queries=MOST_QUERIES)
        case _:
            raise JobError("The page", ["there is no such work; load the page again"])
    return page_of_form(form)


def cancel_work(studio: Studio, form: Form) -> str:
    """Cancel the work in progress; return the address of the next page."""
    studio.works.cancel()
    return page_of_form(form)


def page_of_form(form: Form) -> str:
    """Return the address of the page that sent a form; that of the start page for unknown pages."""
    page = form_field(form, "page")
    return page if page in {"/", "/columns", "/choices", "/run", "/compare"} or page.startswith(("/hierarchies?", "/compare?")) else "/"


def hierarchy_address(name: str) -> str:
    """Return the address of a column's hierarchy page."""
    return f"/hierarchies?column={quote(name, safe='')}"


ACTIONS: dict[str, Callable[[Studio, Form], str]] = {
    "open": open_path,
    "role": change_role,
    "text": change_text,
    "choices": change_choices,
    "node": set_node,
    "method": set_method,
    "steps": change_steps,
    "kind": change_kind,
    "move": move_values,
    "file": use_hierarchy_file,
    "work": start_work,
    "cancel": cancel_work,
}
"""By the last part of their address."""
