#!/usr/bin/env bash
# Removes what the project created on this machine: leftovers of runs, images, the environment.
set -eu

cd "$(dirname "$0")/.."

# A base image can be removed only after the images built on it, so a few rounds are needed.
remove_images() {
  local round image left=""
  for round in 1 2 3 4; do
    left="$(docker images --filter label=streamquake.image=1 \
      --format '{{.Repository}}:{{.Tag}} {{.ID}}' | sed 's/^<none>:<none> //; s/ .*//')"
    for image in $left; do docker rmi "$image" >/dev/null 2>&1 || true; done
  done
  left="$(docker images --filter label=streamquake.image=1 -q | wc -l | tr -d ' ')"
  [ "$left" = 0 ] || echo "clean: $left images are in use and stay" >&2
}

if docker info >/dev/null 2>&1; then
  if [ -x .venv/bin/streamquake ]; then .venv/bin/streamquake sweep || true; fi
  remove_images
fi
rm -rf .venv .mypy_cache .ruff_cache .pytest_cache
find . -name __pycache__ -type d -prune -exec rm -rf {} +
