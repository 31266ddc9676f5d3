# Sourced by the entrypoints: how every JVM of a test cluster is started.
#
# JVM_HEAP_MB      largest heap, in place of the role's own default
# JAVA_OPTS_EXTRA  flags that are added last and so win
# JVM_CDS          "off" starts without the class archive; "dump" writes one when the JVM stops

CDS_DIR=/opt/streamquake/cds

# The second compiler of the JVM (C2) only where there are processors for it. On two processors it took
# two thirds of a TaskManager's time in the first minute of a job, and a task that restarted in a new
# JVM waited three times as long. A user's own -XX:TieredStopAtLevel=4 comes later and wins.
compiler_flag() {
  [ "$(nproc)" -ge 8 ] || echo "-XX:TieredStopAtLevel=1"
}

# One core's worth of JIT and collector: four to six JVMs share a small machine.
lean_flags() {
  echo "-XX:TieredStopAtLevel=1 -XX:-UsePerfData -Xss512k"
}

cds_flags() {
  local archive="$CDS_DIR/$1.jsa"
  case "${JVM_CDS:-on}" in
    off) ;;
    dump) echo "-XX:ArchiveClassesAtExit=$archive -Xlog:cds=off -Xlog:cds+dynamic=off" ;;
    *) if [ -f "$archive" ]; then echo "-Xshare:auto -XX:SharedArchiveFile=$archive"; fi ;;
  esac
}

# A second collector on one command line stops the JVM, so a user's choice replaces ours.
collector_flag() {
  case " $* " in
    *" -XX:+Use"*GC\ *) ;;
    *) echo "-XX:+UseSerialGC" ;;
  esac
}

# java_flags ROLE DEFAULT_HEAP_MB: for the roles that are not what a test measures.
java_flags() {
  echo "$(collector_flag ${JAVA_OPTS_EXTRA:-}) $(lean_flags) $(cds_flags "$1")" \
    "-Xms32m -Xmx${JVM_HEAP_MB:-$2}m ${JAVA_OPTS_EXTRA:-}"
}
