#!/bin/bash
# Starts PostgreSQL as the image `postgres` of its project does: at the first start the database is
# created, and the SQL files of /docker-entrypoint-initdb.d are run in the order of their names.
# POSTGRES_USER and POSTGRES_DB choose its owner and its name. With POSTGRES_PASSWORD clients need
# the password; without one every client is trusted.
set -euo pipefail

case "${1:-}" in -*) set -- postgres "$@" ;; esac
if [ "$1" != postgres ]; then exec "$@"; fi
if [ "$(id -u)" = 0 ]; then
  install -d -m 700 -o postgres -g postgres "$PGDATA"
  exec setpriv --reuid=postgres --regid=postgres --clear-groups "$0" "$@"
fi

user=${POSTGRES_USER:-postgres} database=${POSTGRES_DB:-${POSTGRES_USER:-postgres}}
access=trust
if [ -n "${POSTGRES_PASSWORD:-}" ]; then access=scram-sha-256; fi

create() {
  rm -rf "${PGDATA:?}"/*
  initdb -D "$PGDATA" -U "$user" -E UTF8 --locale=C.UTF-8 --no-sync \
    --auth-local=trust --auth-host="$access" --pwfile=<(echo "${POSTGRES_PASSWORD:-unused}")
  echo "host all all all $access" >> "$PGDATA/pg_hba.conf"
  echo "listen_addresses = '*'" >> "$PGDATA/postgresql.conf"
  # Only a socket of its own: no client takes it for the database that is ready.
  pg_ctl -D "$PGDATA" -w start -o "-c listen_addresses='' -c unix_socket_directories=$PGDATA"
  psql=(psql -v ON_ERROR_STOP=1 -q -h "$PGDATA" -U "$user")
  if [ "$database" != postgres ]; then
    "${psql[@]}" -d postgres -v name="$database" <<< 'CREATE DATABASE :"name"'
  fi
  for file in /docker-entrypoint-initdb.d/*.sql; do
    if [ -e "$file" ]; then "${psql[@]}" -d "$database" -f "$file"; fi
  done
  pg_ctl -D "$PGDATA" -w stop
  touch "$PGDATA/.created"
}

# A node that was killed while it created the database begins again.
if [ ! -e "$PGDATA/.created" ]; then create; fi
exec "$@"
