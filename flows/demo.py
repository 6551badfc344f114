"""``make demo``: a million synthetic patients, anonymised at k = 50 with the job file that comes along."""

import shutil
import sys
from pathlib import Path

from data.medical import make_medical
from data.tables import JOBS
from flows.cli import main
from flows.terminal.screen import Screen

ROWS = 1_000_000
FOLDER = Path(".demo")


def make_patients(folder: Path, rows: int) -> Path:
    """Makes the data and puts the job file beside it.

    Returns:
        The job file.
    """
    folder.mkdir(exist_ok=True)
    make_medical(folder / "medical", rows)
    shutil.copytree(JOBS / "hierarchies", folder / "hierarchies", dirs_exist_ok=True)
    return Path(shutil.copy(JOBS / "medical.yaml", folder))


def demo() -> None:
    """Makes the data and runs ``skald run`` on it."""
    console = Screen(highlight=False)
    console.print(f"Making {ROWS:,} synthetic patients in {FOLDER / 'medical'} …")
    job = make_patients(FOLDER, ROWS)
    console.print(f"skald run {job}\n")
    sys.argv = ["skald", "run", str(job), *sys.argv[1:]]
    main()


if __name__ == "__main__":
    demo()
