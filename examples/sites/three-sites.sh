#!/usr/bin/env bash
# Three sites that trust each other, on one machine: they train together, one is killed and comes
# back, and each ends with the model that all their data make.
#   examples/sites/three-sites.sh           SOTTO=PATH, KEEP=1, NAMESPACES=no
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

# until_status NAME PATTERN: until a line of the site's status is like PATTERN.
until_status() {
  local tries status
  for ((tries = 0; tries < 500; ++tries)); do
    status=$(inside "$1" "$sotto" status "$work/$1/site.toml" 2>/dev/null || true)
    if grep -qE "$2" <<<"$status"; then return; fi
    kill -0 "${pid[$1]}" 2>/dev/null || break
    sleep 0.2
  done
  echo "$1 does not come to: $2" >&2
  tail -20 "$work/$1/log" >&2
  exit 1
}
until_status hospital '^(bank|university) +up'
until_status bank 'round [0-9]{2,}$'
echo "killing the bank, as a power cut would"
kill -KILL "${pid[bank]}"
wait "${pid[bank]}" 2>/dev/null || true
until_status hospital '^bank +down'
inside hospital "$sotto" status "$work/hospital/site.toml"
echo "starting the bank again"
start_site bank
until_status hospital '^bank +up'
until_status bank 'round ([3-9][0-9]{2}|[0-9]{4,})$'
inside hospital "$sotto" status "$work/hospital/site.toml"
echo "stopping all three, in good order"
for name in "${sites[@]}"; do kill -TERM "${pid[$name]}"; done
for name in "${sites[@]}"; do finish_site "$name"; done
echo
for name in "${sites[@]}"; do
  printf '%-12s accuracy %.4f\n' "$name" "$(final "$work/$name/result.json" accuracy)"
done
"$sotto" checkpoint inspect "$work/bank/state/state.a" | head -5
