#!/bin/bash
# Print the folder for the temporary files of tests: in memory where there is space, since tests write
# thousands of small files, and some of them run a program from there; else the usual one.
set -euo pipefail
memory=${1:-/dev/shm}
needed_mb=2048

has_space() {
  [ -w "$memory" ] && [ "$(df --portability --block-size=1M "$memory" | awk 'NR == 2 { print $4 }')" -ge "$needed_mb" ]
}

runs_programs() {
  local program status=0
  program=$(mktemp "$memory/streamquake-XXXXXX")
  printf '#!/bin/sh\n' > "$program"
  chmod +x "$program"
  "$program" 2> /dev/null || status=1
  rm -f "$program"
  return $status
}

if has_space && runs_programs; then
  echo "$memory"
else
  echo "${TMPDIR:-/tmp}"
fi
