#!/bin/sh
# Checks an audit file of a site without sotto: check-audit.sh FILE
# Each line is DIGEST JSON; DIGEST is the SHA-256 of the previous line's digest, a newline and JSON.
set -eu
number=1
digest=$(head -n 1 "$1" | sed 's/.*"previous":"\([0-9a-f]*\)".*/\1/')
while IFS= read -r line; do
  record=${line#* }
  digest=$(printf '%s\n%s' "$digest" "$record" | sha256sum | cut -c 1-64)
  if [ "$digest" != "${line%% *}" ]; then
    echo "$1: line $number does not follow from those before"
    exit 1
  fi
  number=$((number + 1))
done <"$1"
echo "$1: whole; the last digest is $digest"
