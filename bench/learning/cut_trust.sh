#!/usr/bin/env bash
# Cuts N people out of a list of ratings (source,target,rating,…) who all reach each other along
# trust that is one-sided, and prints who of them trusts whom: "source,target" a line. Trust is a
# rating above 0.
#   bench/learning/cut_trust.sh "$SOTTO_DATA/trust/soc-sign-bitcoinalpha.csv" 8
#
# An ear decomposition: the shortest cycle of one-sided trust through some person, then again and
# again the shortest path of such trust that leaves what is there and comes back to it.
set -euo pipefail
awk -F, -v want="${2:-8}" '
NR > 1 && $3 > 0 {
  if (!(($1, $2) in trust)) { trust[$1, $2] = 1; next_of[$1] = next_of[$1] " " $2 }
  if (!($1 in seen)) { seen[$1] = 1; people[++count] = $1 }
}
# The shortest ear with at most `room` new people; marks them. Returns how many they are.
function ear(room,   head, tail, queue, depth, from, i, k, n, list, a, b, added) {
  split("", from); split("", depth); head = 1; tail = 0
  for (i = 1; i <= size; ++i) { queue[++tail] = chosen[i]; depth[chosen[i]] = 0 }
  while (head <= tail) {
    a = queue[head++]
    n = split(next_of[a], list, " ")
    for (k = 1; k <= n; ++k) {
      b = list[k]
      if ((b, a) in trust || b == a) continue
      if (b in member) {
        if (depth[a] == 0) continue
        for (added = 0; !(a in member); a = from[a]) { member[a] = 1; chosen[++size] = a; ++added }
        return added
      }
      if (!(b in depth) && depth[a] < room) { depth[b] = depth[a] + 1; from[b] = a; queue[++tail] = b }
    }
  }
  return 0
}
END {
  for (s = 1; s <= count; ++s) {
    split("", member); split("", chosen); size = 0
    member[people[s]] = 1; chosen[++size] = people[s]
    while (size < want && ear(want - size) > 0) {}
    if (size == want) break
  }
  if (size != want) { print "no such people" > "/dev/stderr"; exit 1 }
  for (i = 1; i <= size; ++i)
    for (k = 1; k <= size; ++k)
      if ((chosen[i], chosen[k]) in trust) print chosen[i] "," chosen[k]
}' "$1"
