"""What a program gets of a release: its manifest, its report, and a summary that a notebook shows."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# ruff: noqa: PLC0415 - who imports skald should not wait for what is used later


@dataclass(frozen=True, repr=False)
class Release:
    """What a release tells of itself.

    Attributes:
        manifest: What `manifest.json` says.
    """

    manifest: dict[str, Any]

    @property
    def report(self) -> dict[str, Any] | None:
        """The content of `report.json`; None where it is not at hand."""
        raise NotImplementedError

    @property
    def page(self) -> str | None:
        """The report's page, HTML that needs nothing else; None where it is not at hand."""
        raise NotImplementedError

    def _repr_html_(self) -> str | None:
        """Return the summary of the report; None, for the plain form, where the report is not at hand."""
        from schemas.release.report import Report
        from tasks.report.page import notebook_summary

        return notebook_summary(Report.model_validate(self.report)) if self.report is not None else None


@dataclass(frozen=True, repr=False)
class Published(Release):
    """A release that is published; a notebook shows what came out.

    Attributes:
        release: Its id.
        folder: Its folder; for a target in an object store its address, as text.
        new: Whether this call made it: the same job on the same data does nothing.
    """

    release: str
    folder: Path | str
    new: bool

    def __repr__(self) -> str:
        return f"Published({self.release!r}, folder={str(self.folder)!r}, new={self.new})"

    @property
    def report(self) -> dict[str, Any] | None:
        """The content of `report.json`; None where the release is in an object store."""
        text = self._document("report.json")
        return None if text is None else json.loads(text)

    @property
    def page(self) -> str | None:
        """The report's page, HTML that needs nothing else; None where the release is in an object store."""
        return self._document("report.html")

    def _document(self, name: str) -> str | None:
        path = self.folder / name if isinstance(self.folder, Path) else None
        from schemas.reading.regular_files import content_of

        # The folder is others' too, and may hold anything by now.
        return content_of(path, links=False).decode() if path and path.is_file() else None


@dataclass(frozen=True, repr=False)
class Anonymised(Release):
    """What was proved of a table that was anonymised in memory; a notebook shows what came out.

    Attributes:
        documents: The report's two files by name, as text.
    """

    documents: dict[str, str]

    def __repr__(self) -> str:
        released, records = self.manifest["released"], self.manifest["records"]
        return f"Anonymised({released:,} of {records:,} records, smallest class {self.manifest['min_class']:,})"

    @property
    def report(self) -> dict[str, Any] | None:
        """The content of `report.json`."""
        return dict(json.loads(self.documents["report.json"]))

    @property
    def page(self) -> str | None:
        """The report's page, HTML that needs nothing else."""
        return self.documents["report.html"]


@dataclass(frozen=True, repr=False)
class AnonymisedTables(Anonymised):
    """What was proved of several tables that were anonymised in memory; a notebook shows what came out."""

    def __repr__(self) -> str:
        persons = self.manifest["persons"]
        return f"Anonymised({persons['released']:,} of {persons['source']:,} persons, smallest history {self.manifest['min_class']:,})"

    def _repr_html_(self) -> str:
        """Return the sentences of the report."""
        from html import escape

        return "".join(f"<p>{escape(sentence)}</p>" for sentence in json.loads(self.documents["report.json"])["sentences"])
