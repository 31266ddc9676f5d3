#!/bin/bash
# master | worker MASTER_URL | driver: a Spark process of a standalone cluster on $SPARK_LOCAL_HOSTNAME.
#
# A driver waits until it is given a program (job/job.py) with its settings (job/job.conf), and runs
# it. When it is started again it runs the same one, which goes on from its checkpoint.
set -eu
. /opt/streamquake/jvm.sh

JOB="$SPARK_HOME/job"

# What Spark reaches into on Java 17, as its own launcher opens it (JavaModuleOptions).
OPEN_PACKAGES="java.lang java.lang.invoke java.lang.reflect java.io java.net java.nio java.util
  java.util.concurrent java.util.concurrent.atomic jdk.internal.ref sun.nio.ch sun.nio.cs
  sun.security.action sun.util.calendar"

opens() {
  local package
  echo "-XX:+IgnoreUnrecognizedVMOptions --add-modules=jdk.incubator.vector"
  for package in $OPEN_PACKAGES; do echo "--add-opens=java.base/$package=ALL-UNNAMED"; done
  echo "-Djdk.reflect.useDirectMethodHandle=false -Dio.netty.tryReflectionSetAccessible=true"
}

run() {
  local role="$1" heap="$2"
  shift 2
  exec java $(java_flags "$role" "$heap") $(opens) -cp "$SPARK_CONF_DIR:$SPARK_HOME/jars/*" "$@"
}

case "${1:-}" in
  master)
    run master 192 org.apache.spark.deploy.master.Master --host "$SPARK_LOCAL_HOSTNAME" \
      --port 7077 --webui-port 8080 ;;
  worker)
    run worker 160 org.apache.spark.deploy.worker.Worker --host "$SPARK_LOCAL_HOSTNAME" \
      --port 7078 --webui-port 8081 --work-dir /var/lib/spark/work "$2" ;;
  driver)
    until [ -s "$JOB/job.conf" ]; do sleep 0.1; done
    mapfile -t arguments < "$JOB/arguments"
    # The program's own speed is part of what a test measures.
    exec java $(collector_flag ${JAVA_OPTS_EXTRA:-}) -XX:-UsePerfData $(compiler_flag) \
      -Xmx"${JVM_HEAP_MB:-512}"m $(opens) ${JAVA_OPTS_EXTRA:-} \
      -cp "$SPARK_CONF_DIR:$SPARK_HOME/jars/*" org.apache.spark.deploy.SparkSubmit \
      --properties-file "$JOB/job.conf" "$JOB/job.py" "${arguments[@]}" ;;
  *) exec "$@" ;;
esac
