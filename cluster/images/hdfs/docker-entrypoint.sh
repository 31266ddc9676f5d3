#!/bin/bash
# namenode | datanode | dfs ARGS | dfsadmin ARGS. The NameNode formats its directory if it is new.
set -eu
. /opt/streamquake/jvm.sh

case "${1:-}" in
  namenode) heap=256 ;;
  datanode) heap=192 ;;
  dfs | dfsadmin) heap=128 ;;
  *) exec "$@" ;;
esac
exec java $(java_flags "$1" "$heap") \
  -Dlog4j.configuration=file:/opt/hadoop/etc/hadoop/log4j.properties \
  -cp "$(cat /opt/hadoop/classpath)" streamquake.HdfsNode /opt/hadoop/etc/hadoop/ "$@"
