#!/usr/bin/env bash
# Five sites on this machine from the short list of docs/operations.md, "For many sites at once":
# `sotto site init` makes their files from the keys that each made itself, `sotto site check` finds
# them to fit together, and they train.
#   examples/sites/five-sites.sh           SOTTO=PATH, PORT=9201 (the first of ten), KEEP=1
set -euo pipefail
source "$(dirname "$0")/sites.sh"
homes=$work/federation
cd "$work"

cat >sites.csv <<'CSV'
name,address
hospital,10.0.0.1:9001
bank,10.0.0.2:9001
university,10.0.0.3:9001
clinic,10.0.0.4:9001
lab,
CSV
# On this machine: other ports of one address.
awk -F, -v port="$port" 'NR > 1 && $2 != "" { $2 = "127.0.0.1:" port++ } { print $1 "," $2 }' \
  sites.csv >here.csv
mv here.csv sites.csv
mapfile -t sites < <(sed '1d; s/,.*//' sites.csv)

# At each site: a key, of which only the .pub is sent.
mkdir keys
for name in "${sites[@]}"; do
  sotto keygen "$name" --quiet
  mv "$name.pub" keys/
done

# At whoever puts the federation together. The template has the settings of all.
cat >shared.toml <<TOML
monitor = "$(first_monitor)"    # of the first site; init counts on for sites of one host

[training]
task = "digits,train=1500,test=500"
model = "softmax"
lr = 0.2
rounds = 200
TOML
sotto site init sites.csv --public-keys keys --out federation \
  --template shared.toml

# At each site: its own key beside its files, and its share of the data.
for k in "${!sites[@]}"; do
  name=${sites[$k]}
  mv "$name.key" "federation/$name/"
  echo "part = \"$((k + 1))/5\"" >>"federation/$name/site.toml"
done
sotto site check federation/hospital/site.toml federation

for name in "${sites[@]}"; do start_site "$name"; done
for name in "${sites[@]}"; do finish_site "$name"; done
for name in "${sites[@]}"; do
  echo "$name: accuracy $(final "$homes/$name/result.json" accuracy)"
done
