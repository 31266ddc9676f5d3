# Sourced while an image is built: runs each role once and keeps the classes it loaded.

DUMP_LOGS=/tmp/cds-logs
mkdir -p "$DUMP_LOGS"

# record ROLE ARGS: start a role that writes its archive when it stops.
record() {
  JVM_CDS=dump JVM_CDS_TOOL=off /docker-entrypoint.sh "$@" >"$DUMP_LOGS/$1.log" 2>&1 &
  eval "pid_$(echo "$1" | tr - _)=$!"
}

# ready ROLE TEXT: wait until the role has said the text.
ready() {
  local tries=0 pid
  pid="pid_$(echo "$1" | tr - _)"
  until grep -q "$2" "$DUMP_LOGS/$1.log"; do
    tries=$((tries + 1))
    [ "$tries" -lt 240 ] || failed "$1" "did not say '$2'"
    kill -0 "${!pid}" 2>/dev/null || failed "$1" "stopped early"
    sleep 0.5
  done
}

# stop ROLE: end it and see that the archive is there.
stop() {
  local name
  name="pid_$(echo "$1" | tr - _)"
  kill -TERM "${!name}"
  wait "${!name}" || true
  [ -s "$CDS_DIR/$1.jsa" ] || failed "$1" "left no class archive"
}

failed() {
  tail -n 30 "$DUMP_LOGS/$1.log"
  echo "class archive: $1 $2"
  exit 1
}
