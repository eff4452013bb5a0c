# Sourced by the scripts of this folder: with -h or --help they print the comment at their head.
head_comment() { awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$0"; }

# refuse_usage [REASON]: says what the command takes, and ends with status 2.
refuse_usage() {
  [ $# -eq 0 ] || echo "$0: $1" >&2
  echo "usage:" >&2
  head_comment >&2
  exit 2
}

# takes_nothing "$@": refuses arguments, for scripts that have none.
takes_nothing() {
  [ $# -eq 0 ] || { echo "$0: '$1' is not expected: it takes no arguments but --help" >&2; exit 2; }
}

case "${1:-}" in
  -h | --help)
    head_comment
    exit 0
    ;;
esac
