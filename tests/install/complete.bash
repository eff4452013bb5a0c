# What the completion offers at the end of a line: complete.bash SCRIPT.
set -euo pipefail
compopt() { :; } # works only while a line is being completed
source "$1"

# offers WORD… : the words so far, the last one unfinished.
offers() {
  COMP_WORDS=("$@")
  COMP_CWORD=$(($# - 1))
  COMPREPLY=()
  _sotto || true # compgen has a status of its own where nothing fits
}

expect() {
  local wanted=$1
  shift
  offers "$@"
  if [ "${COMPREPLY[*]-}" != "$wanted" ]; then
    echo "completing '$*' offers '${COMPREPLY[*]-}', not '$wanted'" >&2
    exit 1
  fi
}

expect "train" sotto tr
expect "--algorithm" sotto train --algo
expect "choco" sotto train --algorithm cho
expect "choco" sotto train --lr 0.1 --algorithm cho
expect "choco" sotto train --algorithm = cho
expect "on off" sotto train --overlap ""
expect "" sotto train --lr ""
expect "codec" sotto bench co
expect "--threads" sotto bench codec --thr
expect "export inspect quantize untie --help" sotto checkpoint ""
expect "bash" sotto completion b
expect "" sotto train --no-such-option
cd "$(mktemp -d)"
touch settings.toml
expect "settings.toml" sotto train --config sett
expect "settings.toml" sotto train --json sett
expect "--json" sotto train --js
rm settings.toml
rmdir "$PWD"
echo "the completion offers what it should"
