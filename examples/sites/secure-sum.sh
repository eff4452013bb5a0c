#!/usr/bin/env bash
# Six sites whose parcels show nobody's model: each learns the mean of all. One is killed in the
# middle and comes back; the others go on with the sum of five.
#   examples/sites/secure-sum.sh           SOTTO=PATH, PORT=9301 (the first of twelve), KEEP=1
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
sotto=${SOTTO:-$here/../../build/sotto}
port=${PORT:-9301}
work=$(mktemp -d)
sites=(hospital bank university clinic school lab)
pids=()
leave() {
  if [ ${#pids[@]} -gt 0 ]; then kill "${pids[@]}" 2>/dev/null || true; fi
  wait
  if [ -z "${KEEP:-}" ]; then rm -rf "$work"; fi
}
trap leave EXIT
cd "$work"

echo "name,address" >sites.csv
for k in "${!sites[@]}"; do
  echo "${sites[$k]},127.0.0.1:$((port + k))" >>sites.csv
done
cat >shared.toml <<TOML
monitor = "127.0.0.1:$((port + 6))"    # of the first site; init counts on for sites of one host

[training]
task = "digits,train=1800,test=500"
model = "softmax"
algorithm = "dpsgd"
lr = 0.2
rounds = 400
communication-interval = 2
gradient-time = "5 ms"

[network]
secure-sum = true
secure-colluders = 1
patience = "5 s"
TOML
"$sotto" site init sites.csv --template shared.toml --out federation --quiet
for k in "${!sites[@]}"; do
  sed -i "s|^\[training\]|[training]\npart = \"$((k + 1))/6\"|" "federation/${sites[$k]}/site.toml"
done
"$sotto" site check federation/hospital/site.toml federation

run() {
  "$sotto" node "federation/$1/site.toml" --quiet --json "$1.json" &
  pids+=($!)
}
for name in "${sites[@]}"; do run "$name"; done
lab=${pids[5]}
sleep 2
kill -KILL "$lab"
wait "$lab" 2>/dev/null || true
unset 'pids[5]'
sleep 1
run lab
for pid in "${pids[@]}"; do wait "$pid"; done
pids=()
for name in "${sites[@]}"; do
  accuracy=$(sed -n '/"final"/,/}/s/.*"accuracy": *\([0-9.]*\).*/\1/p' "$name.json")
  figure() { sed -n "/\"sums\"/,/}/s/.*\"$1\": *\([0-9]*\).*/\1/p" "$name.json"; }
  echo "$name: accuracy $accuracy, rounds with a sum $(figure made), without $(figure lost)," \
    "that did not add up $(figure unequal)"
done
