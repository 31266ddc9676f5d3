#!/usr/bin/env bash
# Runs the fast tests, then the container tests and beside them those with Spark, at the lowest priority:
# the container tests wait for half of their time, and the others use it. Prints the output of the latter
# at the end. Fails if any test failed.
set -u

cd "$(dirname "$0")/.."
make="${MAKE:-make} --no-print-directory"
beside="$(mktemp)"
status=0
spark=
trap '[ -z "$spark" ] || kill "$spark" 2>/dev/null; rm -f "$beside"' EXIT

$make tier-fast || status=1

echo "test: the tests with Spark run beside the container tests; their output follows at the end"
nice -n 19 $make tier-spark >"$beside" 2>&1 &
spark=$!
$make tier-container || status=1
wait "$spark" || status=1
cat "$beside"
exit "$status"
