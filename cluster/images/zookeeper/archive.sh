#!/bin/bash
# Writes the class archive of the server, with the sample configuration.
set -eu
. /opt/streamquake/jvm.sh
. /opt/streamquake/cds.sh

record server
ready server "PrepRequestProcessor (sid:0) started"
stop server
rm -rf /var/lib/zookeeper/* "$DUMP_LOGS" /tmp/hsperfdata*
