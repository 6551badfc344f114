"""What a stranger does who knows nothing of the program: lays files in a release, takes some away, changes bytes."""

from __future__ import annotations

import json
import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

from tests.tampering.kinds import add, data, kind, read

RAW = "person,age\n1,44\n"


def laid(name: str) -> Callable[[Path], object]:
    """Return what lays a raw file into a release."""

    def lay(release: Path) -> None:
        path = release / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(RAW)

    return lay


for name in (
    "raw.csv", "raw.parquet", ".hidden", "notes.txt", "manifest.json~", ".manifest.json.swp", "CURRENT", "README", "Alice Smith 44.txt",
    "data/.hidden.parquet", "data/notes.txt", "data/part-00001.parquet.bak", "data/part-00001.csv", "data/part-99999.parquet",
    "data/_SUCCESS",
    "data/.part-00001.parquet.crc", "more/raw.csv", ".hidden/raw.csv", "data/more/part-00001.parquet", "data/zip=1****/part-00001.parquet",
    "__MACOSX/._data", "data/raw.PARQUET", "data/raw.arrow", "manifest.sig",
):  # fmt: skip
    add(f"a file is laid: {name}", laid(name))
for layout in ("csv", "duckdb", "hive"):
    add("a raw file beside data", laid("raw.csv"), layout)
    add("a raw file in data", laid("data/raw.txt"), layout)
    add("a data file more", laid(f"data/part-00077.{'parquet' if layout == 'hive' else layout}"), layout)


@kind("an empty folder")
def empty_folder(release: Path) -> None:
    (release / "data" / "empty").mkdir()


@kind("a copy of a data file")
def copied(release: Path) -> None:
    path = data(release)[0]
    shutil.copy(path, path.with_name("part-00099.parquet"))


@kind("a link to a raw file")
def link_beside(release: Path) -> None:
    (release / "raw").symlink_to(release.parent.parent / "people" / "000.parquet")


@kind("a link that leads nowhere")
def dangling(release: Path) -> None:
    (release / "data" / "gone").symlink_to("nowhere")


@kind("a folder that is a link")
def linked_folder(release: Path) -> None:
    (release / "more").symlink_to(release.parent.parent / "people")


@kind("data is a link to a folder")
def linked_data(release: Path) -> None:
    moved = release.parent.parent / "moved"
    (release / "data").rename(moved)
    (release / "data").symlink_to(moved)


def linked(name: str) -> Callable[[Path], object]:
    """Return what puts a link to the same content in a file's place."""

    def link(release: Path) -> None:
        path = data(release)[0] if name == "data" else release / name
        moved = release.parent.parent / f"moved{path.suffix}"
        path.rename(moved)
        path.symlink_to(moved)

    return link


for name in ("data", "manifest.json", "report.html", "report.json"):
    add(f"a link in the place of {name}", linked(name))


@kind("a pipe")
def pipe(release: Path) -> None:
    os.mkfifo(release / "data" / "pipe")


@kind("a socket")
def unix_socket(release: Path) -> None:
    here = Path.cwd()
    try:
        # The path of a socket may have a hundred characters at most.
        os.chdir(release)
        with socket.socket(socket.AF_UNIX) as one:
            one.bind("socket")
    finally:
        os.chdir(here)


@kind("a pipe in the place of the report")
def pipe_for_report(release: Path) -> None:
    (release / "report.html").unlink()
    os.mkfifo(release / "report.html")


@kind("a folder in the place of the report")
def folder_for_report(release: Path) -> None:
    (release / "report.json").unlink()
    (release / "report.json").mkdir()


def gone(name: str) -> Callable[[Path], object]:
    """Return what removes a file."""
    return lambda release: (release / name).unlink()


for name in ("report.html", "report.json", "manifest.json"):
    add(f"{name} is gone", gone(name))
add("a data file is gone", lambda release: data(release)[0].unlink())
add("all data files are gone", lambda release: [path.unlink() for path in data(release)])
add("the folder data is gone", lambda release: shutil.rmtree(release / "data"))
add("all is gone but data", lambda release: [path.unlink() for path in release.iterdir() if path.is_file()])
for layout in ("csv", "duckdb", "hive"):
    add("a data file is gone", lambda release: data(release)[0].unlink(), layout)
    add("the manifest is gone", gone("manifest.json"), layout)


@kind("two data files change names")
def swapped(release: Path) -> None:
    first, second = data(release)[:2]
    first.rename(first.with_suffix(".x"))
    second.rename(first)
    first.with_suffix(".x").rename(second)


@kind("a data file has another name")
def renamed_file(release: Path) -> None:
    data(release)[0].rename(release / "data" / "part-00042.parquet")


@kind("a data file lies beside data")
def moved_up(release: Path) -> None:
    data(release)[0].rename(release / "part-00001.parquet")


@kind("data is called Data")
def capital(release: Path) -> None:
    (release / "data").rename(release / "Data")


@kind("a partition has another value", "hive")
def other_partition(release: Path) -> None:
    folder = data(release)[0].parent
    folder.rename(folder.with_name("zip=99999"))


@kind("the release has another name")
def renamed(release: Path) -> None:
    release.rename(release.with_name("people-0123456789abcdef"))


@kind("the release has a free name")
def renamed_freely(release: Path) -> None:
    release.rename(release.with_name("release"))


def pointing(content: bytes) -> Callable[[Path], object]:
    """Return what writes something else into CURRENT."""
    return lambda release: (release.parent / "CURRENT").write_bytes(content)


for words, content in {
    "is empty": b"",
    "names no release": b"people-0123456789abcdef\n",
    "leads out": b"../people\n",
    "is absolute": b"/etc/passwd\n",
    "has no line end": b"{}",
    "ends as on Windows": b"{}\r\n",
    "has a second line": b"{}\nAlice\n",
    "begins with a mark": b"\xef\xbb\xbf{}\n",
    "is no text": b"\xff\xfe\n",
    "has blanks": b" {} \n",
    "names a folder of a release": b"{}/data\n",
}.items():
    add(f"CURRENT {words}", lambda release, content=content: pointing(content.replace(b"{}", release.name.encode()))(release))
add("CURRENT is gone", lambda release: (release.parent / "CURRENT").unlink())


@kind("CURRENT is a link")
def current_link(release: Path) -> None:
    path = release.parent / "CURRENT"
    path.rename(release.parent / "OTHER")
    path.symlink_to("OTHER")


@kind("CURRENT is a folder")
def current_folder(release: Path) -> None:
    (release.parent / "CURRENT").unlink()
    (release.parent / "CURRENT").mkdir()


@kind("CURRENT names a folder without manifest")
def current_other(release: Path) -> None:
    other = release.with_name("people-fedcba9876543210")
    (other / "data").mkdir(parents=True)
    (release.parent / "CURRENT").write_text(f"{other.name}\n")


def places(release: Path) -> dict[str, Path]:
    """Return the files of a release, by what they are called in the name of a kind."""
    return {"data": data(release)[0]} | {name: release / name for name in ("manifest.json", "report.html", "report.json")}


def at(name: str, change: Callable[[bytes], bytes]) -> Callable[[Path], object]:
    """Return what changes the bytes of a file."""

    def tamper(release: Path) -> None:
        path = places(release)[name]
        path.write_bytes(change(path.read_bytes()))

    return tamper


def flipped(part: float) -> Callable[[bytes], bytes]:
    """Return what flips a bit at a share of the length."""

    def flip(content: bytes) -> bytes:
        place = int(len(content) * part)
        return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]

    return flip


for name in ("data", "manifest.json", "report.html", "report.json"):
    for part in (0.0, 0.2, 0.4, 0.6, 0.8, 0.9999):
        add(f"a bit of {name} is flipped at {part:.0%}", at(name, flipped(part)))
    add(f"{name} is cut off", at(name, lambda content: content[:-7]))
    add(f"{name} has a byte more", at(name, lambda content: content + b"\n"))
    add(f"{name} is empty", at(name, lambda content: b""))
for layout in ("csv", "duckdb", "hive"):
    for part in (0.0, 0.3, 0.7, 0.9999):
        add(f"a bit is flipped at {part:.0%}", at("data", flipped(part)), layout)
    add("a byte more", at("data", lambda content: content + b"\n"), layout)
    add("the file is cut off", at("data", lambda content: content[:-7]), layout)


def _sorted(content: bytes) -> bytes:
    return (json.dumps(json.loads(content), indent=2, sort_keys=True) + "\n").encode()


add("the manifest is written in one line", at("manifest.json", lambda content: json.dumps(json.loads(content)).encode()))
add("the manifest has its keys in another order", at("manifest.json", _sorted))
add("the manifest begins with a mark", at("manifest.json", lambda content: b"\xef\xbb\xbf" + content))
add("the manifest ends its lines as on Windows", at("manifest.json", lambda content: content.replace(b"\n", b"\r\n")))
add("the manifest spells a letter otherwise", at("manifest.json", lambda content: content.replace(b'"method"', b'"\\u006dethod"')))
add("the manifest is deeply nested", at("manifest.json", lambda content: b"[" * 100_000))
add("the manifest is no mapping", at("manifest.json", lambda content: b"[]\n"))


def said(field: str, value: object) -> Callable[[Path], object]:
    """Return what changes a figure of the manifest, as an editor would, in the form in which it is written."""

    def tamper(release: Path) -> None:
        found = read(release)
        assert found[field] != value
        (release / "manifest.json").write_text(json.dumps(found | {field: value}, indent=2, ensure_ascii=False) + "\n")

    return tamper


for field, value in {
    "created": "2001-01-01T00:00:00+00:00", "seconds": {}, "peak_rss": 1, "versions": {}, "optimal": "best of the nodes above 1 root",
    "inputs": "0" * 32, "job": "0" * 64, "sources": [], "increment": None, "seal": "0" * 64, "run_by": "Bob", "source_name": "Census",
    "evolved": {"age": "text"}, "unmeasured_overlaps": 7, "signed_by": "ed25519:" + "0" * 64, "documents": [], "repeats": {},
}.items():  # fmt: skip
    if field != "repeats":
        add(f"the manifest says another {field}", said(field, value))
