#!/usr/bin/env bash
# A night: the rows of a suite, the trend over all nights so far, and space for the next ones.
#
#   night.sh SUITE [OUT] [OPTION...]
#
# OPTIONs are those of `streamquake suite`, such as --for 5h, --shard 2/6 or --against 2026-11-20.
# Exits as `streamquake suite` does: 0 every row as expected, 1 one certainly not, 2 bad input,
# 3 undecided or failed to run, 130 interrupted. OUT (`runs`) must be kept from night to night: it
# holds the runs and the store of their results.
set -euo pipefail

suite=${1:?name a suite, such as claims}
out=${2:-runs}
options=("${@:3}")

mkdir -p "$out"
rm -f "$out/summary.md" "$out/junit.xml" # those of an earlier night
began=$(mktemp)
touch -d "1 second ago" "$began" # what is made in the same tick of the clock is not newer
trap 'rm -f "$began"' EXIT

streamquake doctor
streamquake sweep # what a night that was killed left behind

status=0
streamquake suite "$suite" --out "$out" --attempts 2 --plain "${options[@]}" || status=$?
[ "$status" -ne 2 ] || exit 2 # bad input: nothing was run

# A page or a removal that fails does not hide the outcome of the night.
streamquake results --out "$out" --since 90d --page "$out/trend.html" || echo "no trend page" >&2
streamquake prune --out "$out" --keep 20 || echo "old runs are not pruned" >&2

# The table of this night, for the summary of a CI job.
newest=$(find "$out" -maxdepth 1 -name 'suite-*' -newer "$began" | sort | tail -n 1)
if [ -n "$newest" ]; then
  cp "$newest/suite.md" "$out/summary.md"
  cp "$newest/junit.xml" "$out/junit.xml"
fi
exit "$status"
