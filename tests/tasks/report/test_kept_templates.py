"""Compiled templates are kept beside compiled kernels, and a page is made whether they can be or not."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from jinja2 import Environment

from core.compiling import compiled
from tasks.report import page as pages

Made = Callable[[], str]
FRONT = {"name": "patients", "records": 1_000, "k": 10, "unit": "record", "has_current_optimum": None, "qids": [], "nodes": []}
CONTEXT = {"front": FRONT, "charts": [], "dark": ""}


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Made]:
    """Make a page as a process of its own would, with ``tmp_path / "home"`` for what is compiled."""
    monkeypatch.setattr(pages, "compiled_folder", lambda: tmp_path / "home")

    def anew() -> str:
        pages._environment.cache_clear()
        return pages.page("front.html", **CONTEXT)

    yield anew
    pages._environment.cache_clear()


def test_a_second_process_compiles_no_template(made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = made()
    assert list((tmp_path / "home").rglob("*.cache"))
    monkeypatch.setattr(Environment, "_generate", lambda *_arguments, **_named: pytest.fail("compiled"))
    assert made() == first


def test_a_damaged_file_is_compiled_anew(made: Made, tmp_path: Path) -> None:
    first = made()
    for path in (tmp_path / "home").rglob("*.cache"):
        path.write_bytes(b"damaged")
    assert made() == first
    for path in (tmp_path / "home").rglob("*.cache"):
        # The head is whole, and what follows is no code.
        path.write_bytes(path.read_bytes()[:60])
    assert made() == first


def test_a_file_in_which_any_one_byte_is_another_fails_no_page(made: Made, tmp_path: Path) -> None:
    first = made()
    path = next(path for path in (tmp_path / "home").rglob("*.cache"))
    whole = path.read_bytes()
    for place in range(0, len(whole), max(len(whole) // 60, 1)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        assert made() == first


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives a folder to somebody else")
def test_a_folder_of_somebody_else_or_that_all_may_write_is_none_to_keep_code_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(home))
    assert compiled.compiled_folder() == home
    home.chmod(0o1777)
    assert compiled.compiled_folder() is None
    home.chmod(0o700)
    os.chown(home, 12345, 12345)
    assert compiled.compiled_folder() is None


def test_where_nothing_can_be_kept_a_page_is_made_all_the_same(made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = made()
    shutil.rmtree(tmp_path / "home")
    (tmp_path / "home").write_text("a file where the folder would be")
    assert made() == first
    monkeypatch.setattr(pages, "compiled_folder", lambda: None)
    assert made() == first


def test_a_folder_that_vanishes_fails_no_page(made: Made, tmp_path: Path) -> None:
    pages._environment.cache_clear()
    environment = pages._environment()
    shutil.rmtree(tmp_path / "home")
    assert environment.get_template("front.html").render(**CONTEXT) == made()
