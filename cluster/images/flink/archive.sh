#!/bin/bash
# Writes the class archives of the Flink roles: a session cluster on loopback that runs one small
# job with checkpoints, so that the tasks' own classes are in it.
set -eu
. /opt/streamquake/jvm.sh
. /opt/streamquake/cds.sh

# http METHOD PATH BODY: one request to the gateway; the base image has no curl.
http() {
  exec 3<>/dev/tcp/localhost/8083
  printf '%s %s HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: %s\r\n\r\n%s' \
    "$1" "$2" "${#3}" "$3" >&3
  cat <&3
  exec 3>&-
}

statement() {
  http POST "/v1/sessions/$session/statements" "{\"statement\": \"$1\"}" >/dev/null
}

JVM_CDS=dump JVM_CDS_TOOL=dump /docker-entrypoint.sh options taskmanager >/dev/null
record jobmanager
record taskmanager
record sql-gateway -Dsql-gateway.endpoint.rest.address=localhost
ready taskmanager "Successful registration at resource manager"
ready sql-gateway "Rest endpoint listening"

session="$(http POST /v1/sessions '{}' | sed -n 's/.*"sessionHandle" *: *"\([^"]*\)".*/\1/p')"
statement "SET 'execution.checkpointing.interval' = '1s'"
statement "SET 'state.backend.type' = 'rocksdb'"
statement "CREATE TABLE numbers (k BIGINT, v BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '100')"
statement "CREATE TABLE nowhere (k BIGINT, v BIGINT) WITH ('connector' = 'blackhole')"
statement "INSERT INTO nowhere SELECT k, SUM(v) FROM numbers GROUP BY k"
ready jobmanager "Completed checkpoint 2"

stop sql-gateway
stop taskmanager
stop jobmanager
rm -rf "$DUMP_LOGS" /tmp/* 2>/dev/null || true
