#!/usr/bin/env bash
# Three sites that trust each other, on one machine: they train together, one is killed and comes
# back, and each ends with the model that all their data make.
#   examples/sites/three-sites.sh           SOTTO=PATH, PORT=9201 (the first of six), KEEP=1,
#                                           NAMESPACES=no
set -euo pipefail
source "$(dirname "$0")/sites.sh"

for name in hospital bank university; do add_site "$name"; done
for name in "${sites[@]}"; do
  for peer in "${sites[@]}"; do peer_line "$name" "$peer" yes yes; done
  site_file "$name" "task = \"digits\"
part = \"${number[$name]}/3\"
model = \"mlp:64\"
lr = 0.1
eval-every = 50"
done

echo "starting three sites$([ "$namespaces" = yes ] && echo ", each in a network namespace of its own")"
for name in "${sites[@]}"; do start_site "$name"; done

until_status hospital '^(bank|university) +up'
until_status bank 'round [0-9]{2,}$'
echo "killing the bank, as a power cut would"
kill_site bank
until_status hospital '^bank +down'
status_of hospital
echo "starting the bank again"
start_site bank
until_status hospital '^bank +up'
until_status bank 'round ([3-9][0-9]{2}|[0-9]{4,})$'
status_of hospital
echo "stopping all three, in good order"
for name in "${sites[@]}"; do kill -TERM "${pid[$name]}"; done
for name in "${sites[@]}"; do finish_site "$name"; done
echo
for name in "${sites[@]}"; do
  printf '%-12s accuracy %.4f\n' "$name" "$(final "$work/$name/result.json" accuracy)"
done
sotto checkpoint inspect "$work/bank/state/state.a" | head -5
