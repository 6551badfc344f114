"""``make demo``: a million synthetic patients, anonymised at k = 50 with the included job file."""

import shutil
import sys
from pathlib import Path
from shlex import quote

from data.medical import make_medical
from data.tables import JOBS
from flows.cli import main
from flows.terminal.screen import Screen

ROWS = 1_000_000
FOLDER = Path(".demo")


def make_patients(folder: Path, rows: int) -> Path:
    """Write synthetic patients, and copy job file and hierarchies next to them; return the job file."""
    folder.mkdir(exist_ok=True)
    make_medical(folder / "medical", rows)
    shutil.copytree(JOBS / "hierarchies", folder / "hierarchies", dirs_exist_ok=True)
    return Path(shutil.copy(JOBS / "medical.yaml", folder))


def demo() -> None:
    """Make example data, run ``skald run`` on it, and print the next commands to try.

    Raises:
        SystemExit: with the exit code of the run.
    """
    console = Screen(highlight=False)
    console.print(f"Making {ROWS:,} synthetic patients in {FOLDER / 'medical'} …")
    job = make_patients(FOLDER, ROWS)
    console.print(f"skald run {quote(str(job))}\n")
    sys.argv = ["skald", "run", str(job), *sys.argv[1:]]
    try:
        main()
    except SystemExit as end:
        if not end.code:
            console.print("\n".join(next_commands(job)))
        raise


def next_commands(job: Path) -> list[str]:
    """Return the lines that suggest commands after a run: verify its release, draft a job, run it."""
    releases = job.parent / "releases" / "medical"
    release = releases / (releases / "CURRENT").read_text(encoding="utf-8").strip()
    folder = Path(sys.executable).parent
    skald = quote(str((folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder) / "skald"))
    commands = {
        f"{skald} verify {quote(str(release))} --job {quote(str(job))}": "counts the classes of the written files again",
        f"{skald} init your.csv --out job.yaml": "drafts a job for data of your own, with a reason for each column",
        f"{skald} run job.yaml": "publishes a verified release of them",
    }
    width = max(map(len, commands))
    return ["\nNext:", *(f"  {command:<{width}}  # {words}" for command, words in commands.items())]


if __name__ == "__main__":
    demo()
