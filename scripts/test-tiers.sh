#!/usr/bin/env bash
# Runs the tests of the three tiers: the fast ones first, then those of Spark beside those with
# containers. The latter wait for their systems for a part of their time, in which the former run; they
# get little of the processors otherwise. What they print is shown at the end.
set -u

make() { command make --no-print-directory "$@"; }
log=$(mktemp)
beside=
finish() {
  if [ -n "$beside" ]; then kill -TERM -- "-$beside" 2> /dev/null; fi
  rm -f "$log"
}
trap finish EXIT
trap 'exit 130' INT TERM

status=0
make tier-fast || status=1
# A session of its own, whose processes can be ended together.
setsid nice -n 19 make --no-print-directory tier-spark > "$log" 2>&1 &
beside=$!
make tier-container || status=1
wait "$beside" || status=1
beside=
cat "$log"
exit "$status"
