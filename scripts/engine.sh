#!/usr/bin/env bash
# Makes sure that a container engine is reachable. A reachable engine stays unchanged.
# If none is: as root on Debian, installs and starts Docker from Debian's packages;
# otherwise prints the next step and exits 3.
set -eu

LOG=/var/log/streamquake-dockerd.log
WAIT_S=60

say() { echo "engine: $*" >&2; }

answers() { docker info >/dev/null 2>&1; }

give_up() {
  say "$1"
  exit 3
}

on_debian() { [ "$(uname -s)" = Linux ] && command -v apt-get >/dev/null 2>&1; }

install_engine() {
  say "installing Docker from Debian's packages"
  export DEBIAN_FRONTEND=noninteractive
  {
    apt-get update &&
      apt-get install -y --no-install-recommends docker.io iptables mmdebstrap
  } >"$LOG" 2>&1 || give_up "installing docker.io failed; see $LOG"
}

# A process that has ended but was not collected by its parent keeps its pid and its name.
runs() { [ -d "/proc/$1" ] && ! grep -q '^State:[[:space:]]*Z' "/proc/$1/status" 2>/dev/null; }

name_of() { if runs "$1"; then cat "/proc/$1/comm" 2>/dev/null; fi; }

# A pid file, sockets or a containerd of an engine that has ended prevent a new one from starting.
clear_remains() {
  local pid
  for file in /var/run/docker.pid /run/docker/containerd/containerd.pid; do
    [ -f "$file" ] || continue
    pid="$(cat "$file" 2>/dev/null || true)"
    case "$(name_of "${pid:-none}")" in
      dockerd) await_answer "$pid" && exit 0 ;;
      containerd) stop_process "$pid" ;;
    esac
    rm -f "$file"
  done
  rm -f /var/run/docker.sock /run/docker/containerd/containerd.sock \
    /run/docker/containerd/containerd.sock.ttrpc
}

# An engine that another process is starting is reachable soon; this script never ends one that hangs.
await_answer() {
  local waited=0
  until answers; do
    runs "$1" || return 1
    waited=$((waited + 1))
    [ "$waited" -lt "$WAIT_S" ] ||
      give_up "dockerd ($1) runs but does not answer; see its log, or stop it"
    sleep 0.5
  done
}

stop_process() {
  local waited=0
  kill "$1" 2>/dev/null || true
  while runs "$1"; do
    waited=$((waited + 1))
    [ "$waited" -lt 20 ] || { kill -9 "$1" 2>/dev/null || true; break; }
    sleep 0.5
  done
}

start_engine() {
  say "starting dockerd (log: $LOG)"
  # /usr/sbin is not on every root's path, and dockerd needs iptables from there.
  PATH="/usr/sbin:/sbin:$PATH" setsid nohup dockerd >>"$LOG" 2>&1 </dev/null &
  local engine=$! waited=0
  until answers; do
    runs "$engine" || engine_failed "dockerd stopped again"
    waited=$((waited + 1))
    [ "$waited" -lt "$((WAIT_S * 2))" ] || engine_failed "dockerd does not answer in $WAIT_S s"
    sleep 0.5
  done
  say "dockerd answers"
}

engine_failed() {
  tail -n 15 "$LOG" >&2 || true
  give_up "$1; whole log: $LOG"
}

refused_here() {
  command -v docker >/dev/null 2>&1 && docker info 2>&1 | grep -qi 'permission denied'
}

if answers; then exit 0; fi
if refused_here; then
  give_up "Docker refuses this user: add it to the group 'docker' (and log in again), or use sudo"
fi
if [ "$(uname -s)" = Darwin ]; then
  give_up "no container engine answers: start Docker Desktop (or colima) and try again"
fi
if [ -n "${DOCKER_HOST:-}" ]; then
  give_up "the engine at DOCKER_HOST=$DOCKER_HOST does not answer"
fi
if ! on_debian || [ "$(id -u)" != 0 ]; then
  give_up "no container engine answers: install and start Docker, or run this as root on Debian"
fi
if ! command -v dockerd >/dev/null 2>&1 && [ ! -x /usr/sbin/dockerd ]; then install_engine; fi
if [ ! -x /usr/sbin/iptables ] && [ ! -x /sbin/iptables ]; then install_engine; fi
clear_remains
start_engine
