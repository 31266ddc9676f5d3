#!/usr/bin/env bash
# Removes what the project made on this machine: leftovers of runs, images, the environment.
set -eu

cd "$(dirname "$0")/.."

remove_images() {
  local images
  images="$(docker images --filter label=streamquake.image=1 --format '{{.Repository}}:{{.Tag}}')"
  # Children first: an image that another is built on cannot go.
  for image in $(echo "$images" | grep -v -e :17- -e /rootfs: || true) \
    $(echo "$images" | grep -e :17- -e /rootfs: || true); do
    docker rmi "$image" >/dev/null || echo "clean: $image is in use" >&2
  done
}

if docker info >/dev/null 2>&1; then
  if [ -x .venv/bin/streamquake ]; then .venv/bin/streamquake sweep || true; fi
  remove_images
fi
rm -rf .venv .mypy_cache .ruff_cache .pytest_cache
find . -name __pycache__ -type d -prune -exec rm -rf {} +
