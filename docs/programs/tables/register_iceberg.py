import json
import sys
from pathlib import Path

import pyarrow.parquet as pq
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.expressions import AlwaysTrue

target, warehouse, name = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve(), sys.argv[3]
release = target / (target / "CURRENT").read_text().strip()
manifest = json.loads((release / "manifest.json").read_text())
files = [str(release / file["path"]) for file in manifest["files"]]

warehouse.mkdir(parents=True, exist_ok=True)
catalogue = SqlCatalog("skald", uri=f"sqlite:///{warehouse}/catalogue.db", warehouse=f"file://{warehouse}")
catalogue.create_namespace_if_not_exists("published")
table = catalogue.create_table_if_not_exists(f"published.{name}", schema=pq.read_schema(files[0]))
before = table.current_snapshot()
if before and before.summary and before.summary["skald.release"] == release.name:
    sys.exit(print(f"{release.name} is registered."))

told = {"skald.release": release.name, "skald.k": str(manifest["privacy"]["k"])}
with table.transaction() as change:
    if before:
        change.delete(AlwaysTrue(), snapshot_properties=told)
    change.add_files(files, snapshot_properties=told)
print(f"{release.name}: {manifest['released']} records in snapshot {table.current_snapshot().snapshot_id}.")
