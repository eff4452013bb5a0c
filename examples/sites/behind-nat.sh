#!/usr/bin/env bash
# Three sites, two of them behind NATs, and a forwarder: the files are those of docs/operations.md,
# "Both behind NAT", with keys made for the occasion. They train until all are in touch and have come
# some way; then the forwarder is cut, and they meet again; with ssh at another address, which its name
# stands for from then on.
#   examples/sites/behind-nat.sh            SOTTO=PATH, KEEP=1, FORWARDER=ssh|haproxy|nginx|socat
# ssh (the default) is a tunnel that the bank opens; the other programs pass on to the bank, whose
# router lets the forwarder in. Needs root, ip, nft and the forwarder's programs; without one of these
# it says SKIPPED. The network:
#
#   hospital 10.1.0.2 -- NAT -- 198.51.100.2 -+
#   bank     10.2.0.2 -- NAT -- 198.51.100.3 -+-- forwarder 198.51.100.9, sshd
#                                             +-- university 198.51.100.4
set -euo pipefail

source "$(dirname "$0")/sites.sh"
PATH=$PATH:/usr/sbin:/sbin

skip() { echo "SKIPPED: $1"; exit 0; }
[ "$(id -u)" = 0 ] || skip "needs root"
forwarder=${FORWARDER:-ssh}
case $forwarder in
  ssh) needs=(ssh sshd ssh-keygen) ;;
  haproxy | nginx | socat) needs=("$forwarder") ;;
  *) echo "FORWARDER=$forwarder: it is ssh, haproxy, nginx or socat" >&2; exit 2 ;;
esac
for need in ip nft setsid "${needs[@]}"; do
  command -v "$need" >/dev/null || skip "there is no $need"
done
tag=nat$$
ip netns add "$tag-try" 2>/dev/null || skip "no network namespaces"
ip netns del "$tag-try"

chmod 755 "$work"
spaces=(inet forwarder university nat1 nat2 hospital bank)
sites=(hospital bank university)

clean_up_more() {
  local name
  for name in "${spaces[@]}"; do
    ip netns del "$tag-$name" 2>/dev/null || true
    rm -rf "/etc/netns/$tag-$name"
  done
}

inside() { local name=$1; shift; ip netns exec "$tag-$name" "$@"; }

# join NAME ADDRESS: gives a namespace an address on the public network.
join() {
  ip link add "$1" netns "$tag-inet" type veth peer name eth0 netns "$tag-$1"
  ip -n "$tag-inet" link set "$1" master bridge up
  ip -n "$tag-$1" addr add "$2/24" dev eth0
  ip -n "$tag-$1" link set eth0 up
}

# behind NAT NAME NET: a namespace whose only way out is a router that hides it.
behind() {
  ip link add lan netns "$tag-$1" type veth peer name eth0 netns "$tag-$2"
  ip -n "$tag-$1" addr add "$3.1/24" dev lan
  ip -n "$tag-$1" link set lan up
  ip -n "$tag-$2" addr add "$3.2/24" dev eth0
  ip -n "$tag-$2" link set eth0 up
  ip -n "$tag-$2" route add default via "$3.1"
  inside "$1" sh -c 'echo 1 > /proc/sys/net/ipv4/ip_forward'
  inside "$1" nft -f - <<'NFT' || skip "nft cannot translate addresses here"
table ip nat {
  chain out { type nat hook postrouting priority 100; oifname "eth0" masquerade; }
}
table ip filter {
  chain way {
    type filter hook forward priority 0; policy drop;
    iifname "lan" accept
    ct state established,related accept
  }
}
NFT
}

for name in "${spaces[@]}"; do
  ip netns add "$tag-$name"
  ip -n "$tag-$name" link set lo up
  mkdir -p "/etc/netns/$tag-$name"
done
# name_forwarder ADDRESS: its name has this address from now on.
name_forwarder() {
  local name
  for name in "${spaces[@]}"; do  # written in place: a process sees the file that it began with
    printf '127.0.0.1 localhost\n%s forwarder.example.org\n198.51.100.4 university.example.org\n198.51.100.3 bank.example.org\n' \
      "$1" >"/etc/netns/$tag-$name/hosts"
  done
}
name_forwarder 198.51.100.9
ip -n "$tag-inet" link add bridge type bridge
ip -n "$tag-inet" link set bridge up
join forwarder 198.51.100.9
join university 198.51.100.4
join nat1 198.51.100.2
join nat2 198.51.100.3
behind nat1 hospital 10.1.0
behind nat2 bank 10.2.0
if [ "$forwarder" != ssh ]; then
  # The bank's router passes its port on, from the forwarder's address alone.
  inside nat2 nft -f - <<'NFT'
table ip nat {
  chain in {
    type nat hook prerouting priority -100;
    iifname "eth0" ip saddr 198.51.100.9 tcp dport 9001 dnat to 10.2.0.2:9001
  }
}
table ip filter { chain way { ct status dnat accept; }; }
NFT
fi

for name in "${sites[@]}"; do
  mkdir "$work/$name"
  sotto keygen "$work/$name/$name" --quiet
done
key_of() { cat "$work/$1/$1.pub"; }

# write_files NAME: those of a site; the listed address of the bank is the forwarder's.
write_files() {
  local home=$work/$1
  cat >"$home/peers.csv" <<CSV
name,key,address
hospital,$(key_of hospital),
bank,$(key_of bank),forwarder.example.org:9001
university,$(key_of university),university.example.org:9001
CSV
  cat >"$home/site.toml" <<'TOML'
sotto-site = 1
name = "bank"
key = "bank.key"
peers = "peers.csv"
state = "state"
listen = "127.0.0.1:9001"      # where the tunnel ends

[training]
task = "csv:patients.csv"
model = "mlp:64"
lr = 0.1
rounds = 0
TOML
  sed -i "s/bank/$1/" "$home/site.toml"
  [ "$1" = bank ] || sed -i '/^listen/d' "$home/site.toml"
  [ "$forwarder" = ssh ] || sed -i 's/^listen = .*/listen = "0.0.0.0:9001"/' "$home/site.toml"
  awk -v seed="${#1}" 'BEGIN {
    srand(seed); print "age,pressure,sugar,ill"
    for (i = 0; i < 400; ++i) { a = rand(); p = rand(); s = rand(); print a "," p "," s "," (a + p + s > 1.5) }
  }' >"$home/patients.csv"
}
for name in "${sites[@]}"; do write_files "$name"; done

start_sshd() {  # for one account, with one key, at this address
  if [ ! -e "$work/host" ]; then
    ssh-keygen -q -t ed25519 -N '' -f "$work/tunnel"
    ssh-keygen -q -t ed25519 -N '' -f "$work/host"
  fi
  mkdir -p /run/sshd
  cat >"$work/sshd_config" <<SSHD
ListenAddress $1:22
HostKey $work/host
AuthorizedKeysFile $work/tunnel.pub
StrictModes no
UsePAM no
PidFile none
PermitRootLogin prohibit-password
GatewayPorts clientspecified
SSHD
  ip netns exec "$tag-forwarder" "$(command -v sshd)" -D -f "$work/sshd_config" \
    >>"$work/sshd.log" 2>&1 &
  pid[sshd]=$!
}

write_haproxy_file() {
  cat >"$work/haproxy.cfg" <<'HAPROXY'
listen bank
  mode tcp
  bind :9001
  timeout connect 5s
  timeout client 1h
  timeout server 1h
  server bank bank.example.org:9001
HAPROXY
}

write_nginx_file() {
  local module=/usr/lib/nginx/modules/ngx_stream_module.so
  [ ! -e "$module" ] || echo "load_module $module;"
  echo "pid $work/nginx.pid; events {}"
  cat <<'NGINX'
stream {
  server {
    listen 9001;
    proxy_pass bank.example.org:9001;
    proxy_timeout 1h;
  }
}
NGINX
}

start_forwarder() {
  local -a words
  local where=forwarder
  case $forwarder in
    ssh)
      where=bank
      words=(
        ssh -N -R 0.0.0.0:9001:127.0.0.1:9001 -o ServerAliveInterval=10 -o ExitOnForwardFailure=yes tunnel@forwarder.example.org
      )
      # The command is docs/operations.md's to the letter, with an account of the forwarder for the
      # tunnel alone; namespaces share this machine's accounts, and root's is there anywhere.
      words=("${words[@]/tunnel@/root@}")
      words+=(-i "$work/tunnel" -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null
        -o ConnectionAttempts=10 -o BatchMode=yes)
      ;;
    haproxy)
      write_haproxy_file
      words=(haproxy -db -f "$work/haproxy.cfg")
      ;;
    nginx)
      write_nginx_file >"$work/nginx.conf"
      words=(nginx -p "$work" -e stderr -c "$work/nginx.conf" -g 'daemon off;')
      ;;
    socat)
      # shellcheck disable=SC2054
      words=(
        socat TCP-LISTEN:9001,fork,reuseaddr TCP:bank.example.org:9001
      )
      ;;
  esac
  setsid ip netns exec "$tag-$where" "${words[@]}" >>"$work/forwarder.log" 2>&1 &
  pid[forwarder]=$!
}

# until_log NAME PATTERN COUNT: until a line of the site's log is like PATTERN, COUNT times.
until_log() {
  local tries
  for ((tries = 0; tries < 400; ++tries)); do
    if [ "$(grep -cE "$2" "$work/$1/log")" -ge "$3" ]; then return; fi
    kill -0 "${pid[$1]}" 2>/dev/null || break
    sleep 0.2
  done
  echo "$1 does not come to: $2" >&2
  tail -20 "$work"/*/log "$work"/*.log >&2
  exit 1
}

[ "$forwarder" != ssh ] || start_sshd 198.51.100.9
start_forwarder
for name in "${sites[@]}"; do
  ip netns exec "$tag-$name" "$program" node "$work/$name/site.toml" --json "$work/$name/result.json" \
    >"$work/$name/log" 2>&1 &
  pid[$name]=$!
done
until_log hospital 'peer-up.*bank.*one connection' 1
until_log hospital 'peer-up.*university.*one connection' 1
until_log bank 'peer-up.*hospital' 1
until_log bank 'peer-up.*university' 1
grep -h 'listening\|peer-up' "$work"/*/log
echo "cutting the forwarder, and starting it again"
kill -KILL -- "-${pid[forwarder]}"
wait "${pid[forwarder]}" 2>/dev/null || true
until_log hospital 'peer-down.*bank' 1
if [ "$forwarder" = ssh ]; then
  kill -KILL "${pid[sshd]}"
  wait "${pid[sshd]}" 2>/dev/null || true
  ip -n "$tag-forwarder" addr add 198.51.100.10/24 dev eth0
  ip -n "$tag-forwarder" addr del 198.51.100.9/24 dev eth0
  ip -n "$tag-forwarder" addr add 198.51.100.10/24 dev eth0 2>/dev/null || true
  name_forwarder 198.51.100.10
  start_sshd 198.51.100.10
fi
start_forwarder
until_log hospital 'peer-up.*bank' 2
until_log bank 'peer-up.*hospital' 2
for name in "${sites[@]}"; do kill -TERM "${pid[$name]}"; done
for name in "${sites[@]}"; do
  finish_site "$name"
  printf '%-12s %s\n' "$name" "$(grep -h 'ended' "$work/$name/log" | tail -1)"
done
