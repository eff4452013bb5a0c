# Sites on one machine, for the examples beside this file: the program, a folder, keys, lists of
# peers, files, processes, and an end that leaves nothing behind. Sourced, not run.
#
# Sites of add_site have a network namespace each (address 10.77.0.N, all on one bridge) where the
# user is root; NAMESPACES=no, or any other user, keeps them on loopback, where those of
# `sotto site init` always lie. There the sites have the ports from PORT on, and their monitors those
# behind.

program=${SOTTO:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/build/sotto}
[ -x "$program" ] || { echo "no program at $program: build it, or say where it is with SOTTO=PATH" >&2; exit 2; }
sotto() { "$program" "$@"; }
work=$(mktemp -d "${TMPDIR:-/tmp}/sotto-sites.XXXXXX")
homes=$work                # where each site has a folder of its name
port=${PORT:-9201}         # of the first site on loopback
tag=so$$
declare -a sites=()        # names
declare -A number=() pid=()
namespaces=${NAMESPACES:-auto}

clean_up() {
  local name
  for name in "${!pid[@]}"; do  # one that leads a group with all of it
    kill -KILL -- "-${pid[$name]}" 2>/dev/null || kill -KILL "${pid[$name]}" 2>/dev/null || true
  done
  wait 2>/dev/null || true
  if [ "$namespaces" = yes ]; then
    for name in "${sites[@]}"; do ip netns del "$tag-${number[$name]}" 2>/dev/null || true; done
    ip link del "$tag" 2>/dev/null || true
  fi
  if declare -F clean_up_more >/dev/null; then clean_up_more; fi
  if [ -z "${KEEP:-}" ]; then rm -rf "$work"; else echo "kept: $work"; fi
}
trap clean_up EXIT
trap 'exit 130' INT TERM

choose_namespaces() {
  [ "$namespaces" = auto ] || return 0
  namespaces=no
  if [ "$(id -u)" = 0 ] && command -v ip >/dev/null && ip netns add "$tag-try" 2>/dev/null; then
    ip netns del "$tag-try"
    namespaces=yes
  fi
}

# add_site NAME: a folder, a key and an address.
add_site() {
  local name=$1 n=$((${#sites[@]} + 1))
  choose_namespaces
  sites+=("$name")
  number[$name]=$n
  mkdir "$work/$name"
  sotto keygen "$work/$name/$name" --quiet
  [ "$namespaces" = yes ] || return 0
  if [ "$n" = 1 ]; then
    ip link add "$tag" type bridge
    ip link set "$tag" up
  fi
  ip netns add "$tag-$n"
  ip link add "$tag.$n" type veth peer name eth0 netns "$tag-$n"
  ip link set "$tag.$n" master "$tag" up
  ip -n "$tag-$n" addr add "10.77.0.$n/24" dev eth0
  ip -n "$tag-$n" link set eth0 up
  ip -n "$tag-$n" link set lo up
}

# inside NAME COMMAND…: where the site's network is.
inside() {
  local name=$1
  shift
  if [ "$namespaces" = yes ]; then ip netns exec "$tag-${number[$name]}" "$@"; else "$@"; fi
}

# local_address K: of the Kth on loopback, sites first and then their monitors; from 0.
local_address() { echo "127.0.0.1:$((port + $1))"; }
# Of the monitors of `sites`; `sotto site init` counts on from there.
first_monitor() { local_address "${#sites[@]}"; }

address_of() {
  if [ "$namespaces" = yes ]; then echo "10.77.0.${number[$1]}:9001"; else local_address "$((${number[$1]} - 1))"; fi
}
monitor_of() {
  if [ "$namespaces" = yes ]; then echo 127.0.0.1:9100; else local_address "$((${#sites[@]} + ${number[$1]} - 1))"; fi
}

# peer_line SITE PEER MAY_SEND SEND_TO: a line in SITE's list.
peer_line() {
  local list=$work/$1/peers.csv
  [ -e "$list" ] || echo "name,key,address,may_send,send_to" >"$list"
  echo "$2,$(cat "$work/$2/$2.pub"),$(address_of "$2"),$3,$4" >>"$list"
}

# site_file NAME TRAINING: TRAINING is the table [training].
site_file() {
  cat >"$work/$1/site.toml" <<TOML
sotto-site = 1
name = "$1"
key = "$1.key"
peers = "peers.csv"
state = "state"
monitor = "$(monitor_of "$1")"

[training]
$2
TOML
}

# list_sites: the names and addresses of the sites, as `sotto site init` reads them.
list_sites() {
  local k
  echo "name,address"
  for k in "${!sites[@]}"; do echo "${sites[$k]},$(local_address "$k")"; done
}

start_site() {
  local -a where=()
  if [ "$namespaces" = yes ]; then where=(ip netns exec "$tag-${number[$1]}"); fi
  # Not through a function: the process that is started must be the site itself.
  "${where[@]}" "$program" node "$homes/$1/site.toml" --json "$homes/$1/result.json" \
    >>"$homes/$1/log" 2>&1 &
  pid[$1]=$!
}

# kill_site NAME: as a power cut would.
kill_site() {
  kill -KILL "${pid[$1]}"
  wait "${pid[$1]}" 2>/dev/null || true
  unset "pid[$1]"
}

status_of() { inside "$1" "$program" status "$homes/$1/site.toml"; }

# until_status NAME PATTERN: until a line of the site's status is like PATTERN.
until_status() {
  local tries status
  for ((tries = 0; tries < 500; ++tries)); do
    status=$(status_of "$1" 2>/dev/null || true)
    if grep -qE "$2" <<<"$status"; then return; fi
    kill -0 "${pid[$1]}" 2>/dev/null || break
    sleep 0.2
  done
  echo "$1 does not come to: $2" >&2
  tail -20 "$homes/$1/log" >&2
  exit 1
}

# Waits for the end of a site; shows its log when it failed.
finish_site() {
  local status=0
  wait "${pid[$1]}" || status=$?
  unset "pid[$1]"
  if [ $status != 0 ]; then
    echo "$1 failed ($status):" >&2
    tail -20 "$homes/$1/log" >&2
    exit 1
  fi
}

# A figure of "final" in a result of `sotto node` or `sotto train`.
final() { sed -n '/^  "final"/,/}/s/.*"'"$2"'": \([-0-9.e+]*\).*/\1/p' "$1"; }
