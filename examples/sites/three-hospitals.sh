#!/usr/bin/env bash
# Three hospitals with patients of different ages agree on a scaling without showing their tables,
# train under a budget of privacy that counts what the scaling told, and use each other's model.
#   examples/sites/three-hospitals.sh      SOTTO=PATH, PORT=9201 (the first of six), KEEP=1,
#                                          PYTHON=PATH (with onnxruntime, to run the ONNX file too)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
source "$here/sites.sh"
homes=$work/federation
sites=(north south west)
cd "$work"

# Their tables. Whether a patient is ill depends on age and pressure; each hospital has an age of
# its own.
for k in "${!sites[@]}"; do
  awk -v seed="$k" -v youngest="$((20 + 20 * k))" 'BEGIN {
    srand(seed + 1)
    print "age,pressure,smoker,ill"
    for (i = 0; i < 2000; ++i) {
      age = int(youngest + 30 * rand())
      pressure = int(90 + 90 * rand())
      smoker = rand() < 0.3 ? "true" : "false"
      risk = (age - 55) / 10 + (pressure - 135) / 15 + (smoker == "true" ? 1.5 : -0.5)
      print age "," pressure "," smoker "," (risk > 0 ? "yes" : "no")
    }
  }' >"${sites[$k]}.csv"
done

# At each hospital: sums, which are sent to the others. All have agreed on the bounds before.
for name in "${sites[@]}"; do
  sotto data scaling "$name.csv" --bounds age=0:120,pressure=50:250 --privacy-epsilon 1 \
    --output "$name-sums.toml" --quiet
done
# At each hospital, with the same outcome.
sotto data scaling --combine north-sums.toml south-sums.toml west-sums.toml --output scaling.toml

# At whoever puts the federation together; this script makes the keys, too.
list_sites >sites.csv
cat >shared.toml <<TOML
monitor = "$(first_monitor)"    # of the first site; init counts on for sites of one host

[data]
scaling = "scaling.toml"
own-sums = "sums.toml"

[training]
task = "csv:patients.csv"
model = "softmax"
lr = 0.5
rounds = 150
batch = 64
clip-norm = 1
privacy-epsilon = 4
TOML
sotto site init sites.csv --template shared.toml --out federation --quiet

# At each hospital: its table, its sums and the scaling beside its site.toml.
for k in "${!sites[@]}"; do
  folder=federation/${sites[$k]}
  cp "${sites[$k]}.csv" "$folder/patients.csv"
  cp "${sites[$k]}-sums.toml" "$folder/sums.toml"
  cp scaling.toml "$folder/"
done
echo 'export = "model.safetensors"' >>federation/north/site.toml
echo 'export = "model.onnx"' >>federation/west/site.toml
sotto site check federation/north/site.toml federation

for name in "${sites[@]}"; do start_site "$name"; done
for name in "${sites[@]}"; do finish_site "$name"; done
grep -h 'cost epsilon' "$homes/north/log" | head -1
for name in "${sites[@]}"; do
  spent=$(sed -n '/"privacy": {/,/}/s/.*"epsilon": *\([0-9.]*\).*/\1/p' "$homes/$name/result.json" | head -1)
  echo "$name: spent epsilon $spent of 4"
done

# The model of the youngest patients' hospital at the one of the oldest, and the other way round.
right() { paste -d, - <(tail -n +2 "$1" | cut -d, -f4) | awk -F, '$1 == $2 {n++} END {print 100 * n / NR}'; }
if command -v "${PYTHON:-python3}" >/dev/null; then
  echo "north's model at west: $("${PYTHON:-python3}" "$here/predict.py" federation/north/model.safetensors west.csv | right west.csv) % right"
  if "${PYTHON:-python3}" -c 'import onnxruntime' 2>/dev/null; then
    echo "west's ONNX file at north: $("${PYTHON:-python3}" "$here/predict-onnx.py" federation/west/model.onnx north.csv | right north.csv) % right"
  fi
fi
