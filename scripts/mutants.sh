#!/usr/bin/env bash
# Runs mutmut on the named mutants, or on all. mutmut does not follow the links in streamquake/, so it
# works on a copy in build/mutants, where its results stay. JOBS: number of parallel processes.
# It runs every test once to record which code it reaches; PYTEST_ADDOPTS="-k WORD" shortens this for a
# part. The records stay until a file changes, and the next run adds the tests that were left out.
set -eu

cd "$(dirname "$0")/.."
bin="$PWD/.venv/bin"
copy=build/mutants
stats="$copy/mutants/mutmut-stats.json"

mkdir -p "$copy"
rm -rf "$copy/streamquake" "$copy/tests"
# Code that has moved to another function would have none of its tests.
if [ -f "$stats" ] && [ -n "$(find -L streamquake tests -name '*.py' -newer "$stats" -print -quit)" ]; then
  rm "$stats"
fi
# With the modification times, by which mutmut detects changes.
cp -rLp streamquake tests pyproject.toml "$copy"
cd "$copy"
exec "$bin/python" -m mutmut run --max-children "${JOBS:-2}" "$@"
