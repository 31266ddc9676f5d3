#!/bin/bash
# jobmanager | taskmanager | sql-gateway, each with further -Dkey=value arguments.
# options ROLE prints what Flink computes for a role: JVM flags and memory sizes.
set -eu
. /opt/streamquake/jvm.sh

CONF="${FLINK_CONF_DIR:-/opt/flink/conf}"
IMAGE_JARS="$(cat /opt/flink/classpath)"

# What Flink reaches into on Java 17, as its default configuration opens it.
OPEN_PACKAGES="java.lang java.net java.io java.nio sun.nio.ch java.lang.reflect java.text
  java.time java.util java.util.concurrent java.util.concurrent.atomic
  java.util.concurrent.locks"

opens() {
  local package
  for package in $OPEN_PACKAGES; do echo "--add-opens=java.base/$package=ALL-UNNAMED"; done
  echo "--add-exports=java.rmi/sun.rmi.registry=ALL-UNNAMED"
  echo "--add-exports=java.security.jgss/sun.security.krb5=ALL-UNNAMED"
}

# Jars added to lib/ after the build go last: the archive holds while the class path only grows.
class_path() {
  local jar path="$IMAGE_JARS"
  for jar in /opt/flink/lib/*.jar; do
    case ":$IMAGE_JARS:" in *":$jar:"*) ;; *) path="$path:$jar" ;; esac
  done
  echo "$path"
}

# The memory of a Flink JVM follows from its configuration; Flink's own code computes it.
# Lines "jvm FLAG" and "flink ARGUMENT".
resolve() {
  java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData -Xmx64m \
    $(JVM_CDS="${JVM_CDS_TOOL:-${JVM_CDS:-on}}" cds_flags options) \
    -Dlog4j.configurationFile=file:/opt/flink/tool/log4j2.properties \
    -cp "$(echo /opt/flink/tool/*.jar /opt/flink/lib/flink-dist-*.jar | tr ' ' :)" \
    streamquake.FlinkOptions "$ROLE" "$CONF" "$@"
}

ROLE="${1:-}"
case "$ROLE" in
  jobmanager)
    main=org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint
    args=(--configDir "$CONF") ;;
  taskmanager)
    main=org.apache.flink.runtime.taskexecutor.TaskManagerRunner
    args=(--configDir "$CONF") ;;
  sql-gateway)
    main=org.apache.flink.table.gateway.SqlGateway
    args=() ;;
  options)
    ROLE="$2"
    resolve
    exit ;;
  *) exec "$@" ;;
esac
shift

jvm=()
options="$(resolve "$@")"
while read -r kind value; do
  case "$kind" in
    jvm) jvm+=("$value") ;;
    flink) args+=("$value") ;;
  esac
done <<< "$options"

flags="$(collector_flag "${jvm[@]}" ${JAVA_OPTS_EXTRA:-}) -XX:-UsePerfData"
# The tasks' own speed is part of what a test measures.
if [ "$ROLE" = taskmanager ]; then flags="$flags $(compiler_flag)"; else flags="$flags $(lean_flags)"; fi
if [ -n "${JVM_HEAP_MB:-}" ]; then jvm+=("-Xmx${JVM_HEAP_MB}m" "-Xms32m"); fi

exec java $flags $(cds_flags "$ROLE") $(opens) \
  -Dlog4j.configurationFile="file:$CONF/log4j-console.properties" \
  "${jvm[@]}" ${JAVA_OPTS_EXTRA:-} -cp "$(class_path)" "$main" "${args[@]}" "$@"
