import os
import re
import shlex
import sys
import xml.etree.ElementTree as ET
import zipfile
from pathlib import Path

import yaml

project, source, job_file = zipfile.ZipFile(sys.argv[1]), sys.argv[2], Path(sys.argv[3])


def xml(name):
    return ET.fromstring(project.read(name))


separator = xml("project.xml").findtext("separator") or ";"
columns = {"person": "none", "identifiers": [], "quasi_identifiers": [], "sensitive": [], "insensitive": []}
roles = {"IDENTIFYING_ATTRIBUTE": "identifiers", "SENSITIVE_ATTRIBUTE": "sensitive", "INSENSITIVE_ATTRIBUTE": "insensitive"}
folder = job_file.parent / "hierarchies"
folder.mkdir(parents=True, exist_ok=True)
left = []
for column in xml("input/definition.xml"):
    name, kind, listed = column.findtext("name"), column.findtext("type"), column.findtext("ref")
    if kind != "QUASI_IDENTIFYING_ATTRIBUTE":
        columns[roles[kind]].append(name)
    elif listed is None:
        left.append(f"'{name}' has no hierarchy: left out as an identifier")
        columns["identifiers"].append(name)
    else:
        file = folder / (re.sub(r"[^\w.-]", "_", name) + ".csv")
        # It lists values of the data: for you alone.
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as written:
            written.write(project.read(f"input/{listed}"))
        hierarchy = {"csv": f"hierarchies/{file.name}", "delimiter": separator}
        columns["quasi_identifiers"].append({"name": name, "hierarchy": hierarchy})

settings, privacy = xml("input/config.xml"), {}
models = {
    r"(\d+)-anonymity": lambda k: privacy.update(k=int(k)),
    r"distinct-(\d+)-diversity for attribute '(.*)'": lambda l, name: diverse(name, {"distinct": int(l)}),
    r"(?:shannon-)?entropy-([\d.]+)-diversity for attribute '(.*)'": lambda l, name: diverse(name, {"entropy": float(l)}),
    r"recursive-\(([\d.]+),(\d+)\)-diversity for attribute '(.*)'": lambda c, l, name: diverse(
        name, {"recursive": {"c": float(c), "l": int(l)}}
    ),
}


def diverse(name, promised):
    privacy.setdefault("l", {})[name] = promised


for criterion in settings.iter("criterion"):
    text = (criterion.text or "").strip()
    found = [(take, match) for form, take in models.items() if (match := re.fullmatch(form, text))]
    if found:
        found[0][0](*found[0][1].groups())
    else:
        left.append(f"a privacy model is not taken over: {text.partition(' for ')[0]}")

job = {
    "version": 1,
    "name": re.sub(r"[^A-Za-z0-9_-]+", "-", job_file.stem),
    "source": {"path": source, "delimiter": separator} if source.lower().endswith(".csv") else {"path": source},
    "columns": columns,
    "privacy": privacy,
    "suppression": {"limit": float(settings.findtext("relativeMaxOutliers") or 0)},
    "method": {"name": "skald", "objective": "gcp"},
    "memory": "1GB",
    "target": "releases",
}
if "k" not in privacy:
    left.append("the project asks for no k: write privacy.k")
job_file.write_text(yaml.safe_dump(job, sort_keys=False, allow_unicode=True))
print(f"{job_file}: {len(columns['quasi_identifiers'])} quasi-identifiers. Then: skald plan {shlex.quote(str(job_file))}")
print("\n".join(f"Look: {one}." for one in left))
