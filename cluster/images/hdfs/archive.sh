#!/bin/bash
# Writes the class archives of NameNode, DataNode and file shell, with the sample configuration.
set -eu
. /opt/streamquake/jvm.sh
. /opt/streamquake/cds.sh

record namenode
ready namenode "STATE\* Safe mode is OFF\|Starting services required for active state"
record datanode
ready datanode "successfully registered with NN"
JVM_CDS=dump /docker-entrypoint.sh dfs -put -f /docker-entrypoint.sh /x
JVM_CDS=off /docker-entrypoint.sh dfs -cat /x >/dev/null
stop datanode
stop namenode
rm -rf /var/lib/hadoop/* "$DUMP_LOGS" /tmp/hsperfdata* /tmp/hadoop*
