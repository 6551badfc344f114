"""A copy of the repository in which tests run, so that the code may be changed in the meantime."""

from __future__ import annotations

import shutil
import subprocess
from hashlib import sha1
from pathlib import Path


class Copy:
    """A copy of the repository as it stands."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.folder = folder
        listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
        named = subprocess.run(listed, cwd=root, check=True, capture_output=True, text=True).stdout
        for name in filter(None, named.split("\0")):
            if (root / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / name, folder / name)
        self._take_kernels(root)

    def _take_kernels(self, root: Path) -> None:
        """Take what numba compiled of the repository; where it keeps that otherwise, it is compiled anew."""
        for kept in (root / "core" / "__pycache__").glob("*/*_*"):
            room, digest = kept.name.rsplit("_", 1)
            [mine, theirs] = [next(iter(place.glob(f"core/**/{room}")), place) for place in (root, self.folder)]
            if sha1(str(mine).encode(), usedforsecurity=False).hexdigest() == digest:
                name = f"{room}_{sha1(str(theirs).encode(), usedforsecurity=False).hexdigest()}"
                shutil.copytree(kept, self.folder / kept.parent.relative_to(root) / name)
