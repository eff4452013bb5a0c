#!/usr/bin/env bash
# Five sites from the short list of docs/operations.md, "For many sites at once", on this machine:
# `sotto site init` makes their files from the keys that each made itself, `sotto site check` finds
# them to fit together, and they train.
#   examples/sites/five-sites.sh           SOTTO=PATH, PORT=9201 (the first of ten), KEEP=1
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
sotto=${SOTTO:-$here/../../build/sotto}
port=${PORT:-9201}
page=$here/../../docs/operations.md
# block LANGUAGE: the first block of the language in that section.
block() {
  sed -n '/^### For many sites at once/,/^## /p' "$page" |
    sed -n "/^\`\`\`$1\$/,/^\`\`\`\$/p" | sed '1d; /^```/,$d'
}
work=$(mktemp -d)
mapfile -t sites < <(block csv | sed '1d; s/,.*//')
pids=()
leave() {
  if [ ${#pids[@]} -gt 0 ]; then kill "${pids[@]}" 2>/dev/null || true; fi
  wait
  if [ -z "${KEEP:-}" ]; then rm -rf "$work"; fi
}
trap leave EXIT
cd "$work"

# At each site: a key, of which only the .pub is sent.
mkdir keys
block csv | awk -F, -v port="$port" 'NR > 1 && $2 != "" { $2 = "127.0.0.1:" port++ } { print $1 "," $2 }' \
  >sites.csv
for k in "${!sites[@]}"; do
  "$sotto" keygen "${sites[$k]}" --quiet
  mv "${sites[$k]}.pub" keys/
done
cat >shared.toml <<TOML
monitor = "127.0.0.1:$((port + 5))"    # of the first site; init counts on for sites of one host

[training]
task = "digits,train=1500,test=500"
model = "softmax"
lr = 0.2
rounds = 200
TOML

# At whoever puts the federation together.
read -r -a init <<<"$(block sh)"
"$sotto" "${init[@]:1}" --template shared.toml

# At each site: its own key beside its files, and its share of the data.
for k in "${!sites[@]}"; do
  name=${sites[$k]}
  mv "$name.key" "federation/$name/"
  echo "part = \"$((k + 1))/5\"" >>"federation/$name/site.toml"
done
"$sotto" site check federation/hospital/site.toml federation

for name in "${sites[@]}"; do
  "$sotto" node "federation/$name/site.toml" --quiet --json "$name.json" --log-file "$name.log" &
  pids+=($!)
done
for pid in "${pids[@]}"; do wait "$pid"; done
pids=()
for name in "${sites[@]}"; do
  accuracy=$(sed -n '/"final"/,/}/s/.*"accuracy": *\([0-9.]*\).*/\1/p' "$name.json")
  echo "$name: accuracy $accuracy"
done
