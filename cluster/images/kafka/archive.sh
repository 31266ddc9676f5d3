#!/bin/bash
# Writes the class archive of the broker, with the sample configuration.
set -eu
. /opt/streamquake/jvm.sh
. /opt/streamquake/cds.sh

record broker
ready broker "Kafka Server started"
stop broker
rm -rf /var/lib/kafka/data/* "$DUMP_LOGS" /tmp/hsperfdata*
