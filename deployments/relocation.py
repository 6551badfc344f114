"""Build backend: setuptools' own (PEP 517, PEP 660), with all modules of a wheel in one package.

In the checkout the layers lie at the top and the import path is the file path. Next to other projects the names ``tasks`` and ``data``
would not be unique, so a wheel is built of a copy in which they lie in a package: ``core/`` becomes ``skald/core/``, ``skald.py`` its
``__init__``, and every name of one of our modules is changed to its name there. These names are in imports, and in texts that are a
module's path, as registries and steps have them. An editable installation is the checkout as it is.
"""

from __future__ import annotations

import ast
import re
import shutil
import tomllib
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from setuptools import build_meta

NAME = "skald"
FLOORS = ("core", "schemas", "tasks", "flows", "data")
BESIDE = ("pyproject.toml", "README.md", f"{NAME}.py", "deployments/relocation.py")
"""What a source archive has beside the floors."""

_PATH = re.compile(rf"({'|'.join(FLOORS)})((?:\.\w+)*)\.?(?::\w+)?")
_CONFIGURED = f"""
[tool.setuptools.packages.find]
include = ["{NAME}*"]
namespaces = false

[tool.setuptools.package-data]
"*" = ["**/*"]
"""

Settings = dict[str, Any] | None

build_editable = build_meta.build_editable
prepare_metadata_for_build_editable = build_meta.prepare_metadata_for_build_editable
get_requires_for_build_editable = build_meta.get_requires_for_build_editable


def get_requires_for_build_wheel(config_settings: Settings = None) -> list[str]:
    """Return an empty list, because setuptools is required already."""
    return []


get_requires_for_build_sdist = get_requires_for_build_wheel


def build_wheel(wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None) -> str:
    """Build the wheel from a relocated copy, and return its file name."""
    target = str(Path(wheel_directory).absolute())
    with _in_copy(relocate):
        return str(build_meta.build_wheel(target, config_settings, metadata_directory))


def prepare_metadata_for_build_wheel(metadata_directory: str, config_settings: Settings = None) -> str:
    """Write the wheel's metadata, and return the name of their folder.

    Its commands are those of the relocated copy.
    """
    target = str(Path(metadata_directory).absolute())
    with _in_copy(relocate):
        return str(build_meta.prepare_metadata_for_build_wheel(target, config_settings))


def build_sdist(sdist_directory: str, config_settings: Settings = None) -> str:
    """Build the source archive from a copy, and return its file name.

    The same wheel can be built from it.
    """
    target = str(Path(sdist_directory).absolute())
    with _in_copy(copy_sources):
        return str(build_meta.build_sdist(target, config_settings))


@contextmanager
def _in_copy(made: Callable[[Path, Path], None]) -> Iterator[None]:
    """Work in a temporary copy of the checkout during the block.

    So a build leaves nothing in the checkout.
    """
    with TemporaryDirectory(prefix=f"{NAME}-build-") as folder:
        made(Path.cwd(), Path(folder))
        with chdir(folder):
            yield


def copy_sources(checkout: Path, target: Path) -> None:
    """Copy the project's files unchanged into a folder, and write a ``MANIFEST.in`` there."""
    for path in (*(checkout / name for name in BESIDE), *_files(checkout)):
        copy = target / path.relative_to(checkout)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
    (target / "MANIFEST.in").write_text("include deployments/relocation.py\n")


def relocate(checkout: Path, target: Path) -> None:
    """Copy the project's files into a folder as one package, with imports changed to the package."""
    known = {_module(path.relative_to(checkout)) for path in _files(checkout)}
    for path in (checkout / f"{NAME}.py", *_files(checkout)):
        inside = Path("__init__.py") if path.stem == NAME and path.parent == checkout else path.relative_to(checkout)
        copy = target / NAME / inside
        copy.parent.mkdir(parents=True, exist_ok=True)
        content = path.read_bytes()
        copy.write_bytes(relocated(content, known, str(inside)) if path.suffix == ".py" else content)
    (target / NAME / "py.typed").touch()
    project = (checkout / "pyproject.toml").read_text("utf-8")
    # Tables of tools come last, and are about the checkout; of the rest the commands alone name modules.
    said = project[: project.index("\n[tool.")]
    (target / "pyproject.toml").write_text(re.sub(rf'= "({"|".join(FLOORS)})\.', rf'= "{NAME}.\1.', said) + _CONFIGURED, "utf-8")
    shutil.copyfile(checkout / "README.md", target / "README.md")


def _files(checkout: Path) -> Iterator[Path]:
    """Yield the modules of all layers, and the data files that pyproject.toml lists."""
    patterns: dict[str, list[str]] = tomllib.loads((checkout / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]["package-data"]
    for floor in FLOORS:
        yield from sorted((checkout / floor).rglob("*.py"))
    for package, names in patterns.items():
        for name in names:
            yield from sorted((checkout / package.replace(".", "/")).glob(name))


def _module(path: Path) -> str:
    """Return the dotted module name of a file path."""
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def relocated(source: bytes, known: set[str], name: str) -> bytes:
    """Return a module's source with imports changed to the one package, or raise SyntaxError.

    Every line stays where it was.

    Args:
        source: UTF-8.
        known: The modules of the project as the checkout calls them.
        name: Of the file, for a message.

    Raises:
        SyntaxError: a module is named in a way that cannot be told apart from other text.
    """
    lines = source.splitlines(keepends=True)
    tree = ast.parse(source)
    in_f_strings = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    places = set()
    for node in ast.walk(tree):
        match node:
            case ast.Import() if any(alias.name.split(".")[0] in FLOORS for alias in node.names):
                raise SyntaxError(f"{name}:{node.lineno}: write 'from … import …'; of a wheel this would bind a name that it does not have")
            case ast.ImportFrom(module=str(module), level=0) if module.split(".")[0] in FLOORS:
                places.add((node.lineno, node.col_offset + len("from ")))
            case ast.Constant(value=str(text)) if _names_module(text, known):
                if id(node) in in_f_strings or lines[node.lineno - 1][node.col_offset : node.col_offset + 1] not in {b"'", b'"'}:
                    raise SyntaxError(f"{name}:{node.lineno}: write the module's path as one plain text, so that it is found")
                places.add((node.lineno, node.col_offset + 1))
    # From the end, because what is put in moves what follows.
    for line, column in sorted(places, reverse=True):
        lines[line - 1] = lines[line - 1][:column] + f"{NAME}.".encode() + lines[line - 1][column:]
    return b"".join(lines)


def _names_module(text: str, known: set[str]) -> bool:
    """Return whether a text is the dotted path of one of our modules, or of something in one."""
    found = _PATH.fullmatch(text)
    return found is not None and "." in text and found[1] + found[2] in known
