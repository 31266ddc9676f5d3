#!/usr/bin/env bash
# Runs mutmut on the mutants that are named, or on all. It does not follow the links in streamquake/,
# and so works on a copy in build/mutants, where its results stay. JOBS: how many at a time.
# It runs every test once to see which reaches what; for a part, PYTEST_ADDOPTS="-k WORD" makes it
# short. What was seen is kept, and tests that were left out are run the next time.
set -eu

cd "$(dirname "$0")/.."
bin="$PWD/.venv/bin"
copy=build/mutants

mkdir -p "$copy"
rm -rf "$copy/streamquake" "$copy/tests"
# With their times, by which mutmut knows what has changed.
cp -rLp streamquake tests pyproject.toml "$copy"
cd "$copy"
exec "$bin/mutmut" run --max-children "${JOBS:-2}" "$@"
