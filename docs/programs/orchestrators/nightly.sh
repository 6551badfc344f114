set -eu
"${SKALD:-skald}" run "$JOB" --json --direct > manifest.json
export SKALD_RELEASE="$TARGET/$(cat "$TARGET/CURRENT")"
"${SKALD:-skald}" verify "$SKALD_RELEASE" --job "$JOB"
k=$(jq .privacy.k manifest.json)
qids=$(jq -r '[.asked.quasi_identifiers[].columns[]] | join(", ")' manifest.json)
"${DBT:-dbt}" build --profiles-dir . --vars "{k: $k, quasi_identifiers: '$qids'}"
