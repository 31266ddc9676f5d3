#!/bin/bash
# Writes the class archives of the Flink roles: a session cluster on loopback that runs small jobs,
# so that the classes of tasks, checkpoints and connectors are in them. No Kafka and no HDFS is there,
# so of their clients the classes are kept that find this out.
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
record taskmanager -Dtaskmanager.numberOfTaskSlots=4
record sql-gateway -Dsql-gateway.endpoint.rest.address=localhost
ready taskmanager "Successful registration at resource manager"
ready sql-gateway "Rest endpoint listening"

session="$(http POST /v1/sessions '{}' | sed -n 's/.*"sessionHandle" *: *"\([^"]*\)".*/\1/p')"
statement "SET 'execution.checkpointing.interval' = '1s'"
statement "SET 'state.backend.type' = 'rocksdb'"
statement "CREATE TABLE numbers (k BIGINT, v BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '100')"
statement "CREATE TABLE nowhere (k BIGINT, v BIGINT) WITH ('connector' = 'blackhole')"
statement "CREATE TABLE files (k BIGINT, v BIGINT) WITH ('connector' = 'filesystem', 'path' = '/tmp/files', 'format' = 'json')"
statement "CREATE TABLE folder (k BIGINT, v BIGINT) WITH ('connector' = 'filesystem', 'path' = 'hdfs://localhost:9/folder', 'format' = 'json')"
statement "CREATE TABLE topic (k BIGINT, v BIGINT) WITH ('connector' = 'kafka', 'topic' = 'numbers', 'properties.bootstrap.servers' = 'localhost:9', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json', 'sink.delivery-guarantee' = 'exactly-once', 'sink.transactional-id-prefix' = 'archive')"
statement "EXECUTE STATEMENT SET BEGIN INSERT INTO nowhere SELECT k, SUM(v) FROM numbers GROUP BY k; INSERT INTO files SELECT k, v FROM numbers; END"
ready jobmanager "Completed checkpoint 2 "
statement "INSERT INTO folder SELECT k, v FROM numbers"
ready taskmanager "Connection refused"
statement "INSERT INTO topic SELECT k, v FROM topic"
ready jobmanager "AdminClient.*could not be established"
ready taskmanager "Producer.*could not be established"

stop sql-gateway
stop taskmanager
stop jobmanager
rm -rf "$DUMP_LOGS" /tmp/* 2>/dev/null || true
