#!/usr/bin/env bash
# Eight sites along one-sided trust, as real people gave it, on real images that are split among
# them; beside it the same model trained centrally on all images. The exit status is 1 where the worst
# site is more than a point below.
#   SOTTO_DATA=FOLDER bench/learning/eight_sites.sh      with FOLDER/trust and FOLDER/mnist
#   ROUNDS=600 PARTITION=iid|label|dirichlet:0.3 COMPRESSOR=none MODEL=mlp:64 LR=0.1 SCHEDULE=cosine
set -euo pipefail
: "${SOTTO_DATA:?set it to the folder with trust/ and mnist/}"
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../../examples/sites/sites.sh"

rounds=${ROUNDS:-600}
model=${MODEL:-mlp:64}
lr=${LR:-0.1}
schedule=${SCHEDULE:-cosine}
task="mnist:$(cd "$SOTTO_DATA/mnist" && pwd)"
edges=$("$here/cut_trust.sh" "$SOTTO_DATA/trust/soc-sign-bitcoinalpha.csv" 8)
trusts() { grep -qx "$1,$2" <<<"$edges"; }
say() { if "$@"; then echo yes; else echo no; fi; }

for name in $(tr ',' '\n' <<<"$edges" | sort -nu); do add_site "$name"; done
for name in "${sites[@]}"; do
  peer_line "$name" "$name" yes yes
  for peer in "${sites[@]}"; do
    # A site hears whom it trusts, and sends to those who trust it.
    if [ "$name" != "$peer" ] && { trusts "$name" "$peer" || trusts "$peer" "$name"; }; then
      peer_line "$name" "$peer" "$(say trusts "$name" "$peer")" "$(say trusts "$peer" "$name")"
    fi
  done
  site_file "$name" "task = \"$task\"
part = \"${number[$name]}/8\"
partition = \"${PARTITION:-iid}\"
model = \"$model\"
lr = $lr
schedule = \"$schedule\"
rounds = $rounds
eval-every = $rounds
algorithm = \"pushsum\"
compressor = \"${COMPRESSOR:-none}\""
done
echo "$(wc -l <<<"$edges") edges of trust among 8 sites: $(tr '\n' ' ' <<<"${edges//,/→}")"
for name in "${sites[@]}"; do start_site "$name"; done
for name in "${sites[@]}"; do finish_site "$name"; done

sotto train --task "$task" --model "$model" --nodes 1 --algorithm dpsgd --topology complete \
  --batch 256 --lr "$lr" --schedule "$schedule" --rounds "$rounds" --eval-every 0 --json "$work/central.json" --quiet
central=$(final "$work/central.json" accuracy)
printf '%-12s %s\n' site accuracy
worst=1
for name in "${sites[@]}"; do
  accuracy=$(final "$work/$name/result.json" accuracy)
  printf '%-12s %.4f\n' "$name" "$accuracy"
  worst=$(awk -v a="$accuracy" -v b="$worst" 'BEGIN { print a < b ? a : b }')
done
printf '%-12s %.4f\n' central "$central"
awk -v worst="$worst" -v central="$central" 'BEGIN {
  points = 100 * (central - worst)
  printf "the worst site is %.2f points %s central training\n", points < 0 ? -points : points,
         points < 0 ? "above" : "below"
  exit !(points <= 1)
}'
