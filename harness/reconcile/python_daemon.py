"""The process that starts Spark's Python workers on this machine.

    python -m streamquake.harness.reconcile.python_daemon

Spark puts its own packages as archives before all others. Each task then reads the directories of
these archives again, 16 times, since a worker drops the caches of its imports (measured: 0.17 CPU
seconds of a task that calls a function of Python, and 0.01 without the archives). The same release
of pyspark is installed here, so the archives are not needed. What every worker needs is imported
once, before the workers are forked.
"""

from __future__ import annotations

import sys

sys.path[:] = [path for path in sys.path if not path.endswith((".zip", ".jar"))]
sys.path_importer_cache.clear()

import pyarrow.compute  # noqa: E402, F401 - imported for the workers
from pyspark.daemon import manager  # noqa: E402

import streamquake.harness.reconcile.json.plain_lines  # noqa: E402, F401 - imported for the workers

if __name__ == "__main__":
    manager()  # type: ignore[no-untyped-call]
