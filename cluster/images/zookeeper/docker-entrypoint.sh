#!/bin/bash
# server [CONFIG]: writes the server's number where its data are, then serves.
# ZOO_MY_ID  the number of this server in its ensemble (default 1)
set -eu
. /opt/streamquake/jvm.sh

# As properties of the JVM: a folder on the class path would rule out the class archive.
log_flags() {
  local log=-Dorg.slf4j.simpleLogger
  echo "$log.logFile=System.out $log.showDateTime=true $log.showThreadName=false" \
    "$log.dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSS'Z' $log.showShortLogName=true"
}

[ "${1:-}" = server ] || exec "$@"
config="${2:-/opt/zookeeper/conf/zoo.cfg}"
data="$(sed -n 's/^dataDir=//p' "$config")"
mkdir -p "$data"
echo "${ZOO_MY_ID:-1}" > "$data/myid"
exec java $(java_flags server 96) $(log_flags) -cp "$(cat /opt/zookeeper/classpath)" \
  org.apache.zookeeper.server.quorum.QuorumPeerMain "$config"
