"""What a run on the medical data costs, beside the floor: a plain DuckDB copy of the same columns.

    python -m benchmarks.medical [--rows 1000000]

The data are made in ``benchmarks/.data`` and kept for the next time.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from benchmarks.measure import Cost, measure, print_table, skald
from flows.demo import make_patients

DATA = Path(__file__).parent / ".data"
ROOT = Path(__file__).parent.parent
COLUMNS = "blood_group, profession, age, bmi, pin_code, health_condition"
COPY = f"""
import duckdb
duckdb.sql("COPY (SELECT {COLUMNS} FROM 'medical/*.parquet') TO 'copy.parquet' (FORMAT parquet, COMPRESSION zstd)")
"""
START = """
from flows.server.local_api import prefect_api, prepare_prefect
with prefect_api(prepare_prefect()):
    from tasks.engine.flows import as_flow
    from prefect import flow
    import flows.skald
    flow(lambda: 1, name="nothing")()
"""
IMPORT = "import flows.skald"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    rows = parser.parse_args().rows
    folder = DATA / f"medical-{rows}"
    if not (folder / "medical").exists():
        folder.mkdir(parents=True)
        make_patients(folder, rows)
    python = [sys.executable, "-c"]
    with tempfile.TemporaryDirectory() as cache:
        environment = {"PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": cache}
        _fresh(folder)
        copy = measure([*python, COPY], folder, **environment)
        measure([*python, START], folder, **environment)
        start = measure([*python, START], folder, **environment)
        imported = measure([*python, IMPORT], folder, SKALD_DIRECT="1", **environment)
        through = measure(skald("run", "medical.yaml"), folder, **environment)
        again = measure(skald("run", "medical.yaml", "--set", "privacy.k=10"), folder, **environment)
        _fresh(folder)
        direct = measure(skald("run", "medical.yaml", "--direct"), folder, **environment)
        reused = measure(skald("run", "medical.yaml", "--direct", "--set", "privacy.k=10"), folder, **environment)
    table: list[tuple[str, Cost]] = [
        ("plain copy of the same columns (DuckDB)", copy),
        ("skald run --direct", direct),
        ("  of which imports", imported),
        ("skald run --direct, another k: phases 1 and 2 reused", reused),
        ("skald run", through),
        ("  of which imports and Prefect's start-up", start),
        ("skald run, another k: phases 1 and 2 reused", again),
    ]
    print_table(f"medical, {rows:,} records, k = 50, limit 0.01, memory 1GB", table, copy)
    aside = f"Prefect's start-up aside, a run costs {through.cpu - start.cpu:.2f} CPU s"
    print(f"\n{aside}; without Prefect and imports {direct.cpu - imported.cpu:.2f}.")


def _fresh(folder: Path) -> None:
    for name in (".skald", "releases"):
        shutil.rmtree(folder / name, ignore_errors=True)
    (folder / "copy.parquet").unlink(missing_ok=True)


if __name__ == "__main__":
    main()
