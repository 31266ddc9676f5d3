#!/bin/bash
# broker [PROPERTIES]: formats the storage if it is new, then serves.
set -eu
. /opt/streamquake/jvm.sh

[ "${1:-}" = broker ] || exec "$@"
exec java $(java_flags broker 512) \
  -Dlog4j2.configurationFile=file:/opt/kafka/config/log4j2.properties \
  -cp "$(cat /opt/kafka/classpath)" streamquake.KafkaNode \
  "${CLUSTER_ID:-c3RyZWFtcXVha2UtMDAwMQ}" "${2:-/opt/kafka/config/server.properties}"
