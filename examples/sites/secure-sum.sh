#!/usr/bin/env bash
# Six sites whose parcels show nobody's model: each learns the mean of all. One is killed in the
# middle and comes back; the others go on with the sum of five.
#   examples/sites/secure-sum.sh           SOTTO=PATH, PORT=9201 (the first of twelve), KEEP=1
set -euo pipefail
source "$(dirname "$0")/sites.sh"
homes=$work/federation
sites=(hospital bank university clinic school lab)
cd "$work"

list_sites >sites.csv
cat >shared.toml <<TOML
monitor = "$(first_monitor)"    # of the first site; init counts on for sites of one host

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
sotto site init sites.csv --template shared.toml --out federation --quiet
for k in "${!sites[@]}"; do
  sed -i "s|^\[training\]|[training]\npart = \"$((k + 1))/6\"|" "federation/${sites[$k]}/site.toml"
done
sotto site check federation/hospital/site.toml federation

for name in "${sites[@]}"; do start_site "$name"; done
until_status hospital 'round [0-9]{2,} of'
kill_site lab
until_status hospital '^lab +down'
start_site lab
for name in "${sites[@]}"; do finish_site "$name"; done
for name in "${sites[@]}"; do
  result=federation/$name/result.json
  figure() { sed -n "/\"sums\"/,/}/s/.*\"$1\": *\([0-9]*\).*/\1/p" "$result"; }
  echo "$name: accuracy $(final "$result" accuracy), rounds with a sum $(figure made)," \
    "without $(figure lost), that did not add up $(figure unequal)"
done
