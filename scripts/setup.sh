#!/usr/bin/env bash
# Installs everything that a clone needs before a run: Python environment, Java, container engine, images.
# Skips each part that is present already.
#   SKIP_IMAGES=1  skips the engine and the images (sufficient for lint and unit tests)
set -eu

cd "$(dirname "$0")/.."
ENVIRONMENT=.venv
STAMP="$ENVIRONMENT/.streamquake-installed"

say() { echo "setup: $*" >&2; }

give_up() {
  say "$1"
  exit 3
}

may_install() { command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; }

# need COMMAND PACKAGES HINT: installs Debian's packages for a missing command, or prints the hint.
need() {
  if command -v "$1" >/dev/null 2>&1; then return; fi
  may_install || give_up "$1 is missing: $3"
  say "installing $2"
  if ! DEBIAN_FRONTEND=noninteractive sh -c \
    "apt-get update && apt-get install -y --no-install-recommends $2" >/tmp/setup-apt.log 2>&1; then
    tail -n 15 /tmp/setup-apt.log >&2
    give_up "apt-get could not install $2"
  fi
}

python_with_version() {
  local candidate
  for candidate in python3.13 python3.12 python3.11 python3; do
    if "$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' \
      >/dev/null 2>&1; then
      echo "$candidate"
      return
    fi
  done
}

hash_of() { cat "$@" | cksum | tr ' ' '-'; }

pip_install() {
  "$ENVIRONMENT/bin/python" -m pip install -q --disable-pip-version-check "$@" ||
    give_up "pip could not install the packages"
}

setup_python() {
  local wanted python
  wanted="$(hash_of pyproject.toml requirements.txt)-$(pwd)"
  if [ -f "$STAMP" ] && [ "$(cat "$STAMP")" = "$wanted" ] &&
    "$ENVIRONMENT/bin/python" -c '' 2>/dev/null; then
    return
  fi
  python="$(python_with_version)"
  if [ -z "$python" ]; then
    need python3.11 "python3 python3-venv" "install Python 3.11 or newer"
    python="$(python_with_version)"
    [ -n "$python" ] || give_up "Python 3.11 or newer with the venv module is needed"
  fi
  say "installing the Python packages into $ENVIRONMENT"
  "$python" -m venv "$ENVIRONMENT"
  pip_install --require-hashes -r requirements.txt
  pip_install --no-deps --no-build-isolation --config-settings editable_mode=compat -e .
  echo "$wanted" >"$STAMP"
}

java_major() {
  java -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1
}

setup_java() {
  if [ "$(java_major || true)" -ge 17 ] 2>/dev/null; then return; fi
  may_install || give_up "Java 17 or newer is needed: install a JRE (macOS: brew install openjdk@17)"
  say "installing Java 17"
  DEBIAN_FRONTEND=noninteractive sh -c \
    'apt-get update && apt-get install -y --no-install-recommends openjdk-17-jre-headless' \
    >/tmp/setup-apt.log 2>&1 || give_up "apt-get could not install Java; see /tmp/setup-apt.log"
}

setup_images() {
  if may_install; then
    need mmdebstrap mmdebstrap ""
    need mvn maven ""
  fi
  "$ENVIRONMENT/bin/streamquake" images build
}

setup_python
setup_java
if [ -z "${SKIP_IMAGES:-}" ]; then
  bash scripts/engine.sh
  setup_images
fi
