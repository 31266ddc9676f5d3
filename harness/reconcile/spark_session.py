"""The embedded Spark session: quiet, on loopback, tuned for verdicts on one machine.

This file starts the virtual machine itself, instead of the builder of pyspark, so that its banners
go to a log file and not to the terminal. Start-up dominates a small verdict (measured on two cores:
8 s with the default flags, 5 s with these). So `SparkInBackground` starts it while the cluster is
deployed, before anything is timed.
"""

from __future__ import annotations

import atexit
import importlib.metadata
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from streamquake.cluster.images.build import spark_jars
from streamquake.cluster.runtime.clock import Clock, SystemClock
from streamquake.cluster.runtime.waiting import NotReadyInTime, wait_until
from streamquake.harness.reconcile.class_archive import (
    options_to_use_archive,
    options_to_write_archive,
)
from streamquake.topologies.errors import ErrorKind, StreamquakeError

SHUFFLE_PARTITIONS = 8
DRIVER_MEMORY_MB = 2048
PYTHON_DAEMON = "streamquake.harness.reconcile.python_daemon"
"""The module of `python_daemon.py`."""
LAST_ON_CLASS_PATH = "SPARK_DIST_CLASSPATH"
"""The variable with what Spark's launcher puts at the end of the class path."""
ENV_LOADED = "SPARK_ENV_LOADED"
"""With this variable the launcher leaves out a `spark-env.sh`, which may set the other one."""
FREQUENT_CLASSES = (
    ("PythonSQLUtils",),
    ("PythonUtils",),
    ("functions",),
    ("org.apache.spark.sql.classic.SparkSession",),
    ("org.apache.spark.sql.functions",),
    ("py4j", "reflection", "TypeUtil"),
)
"""Classes by the names that pyspark and py4j look up one after the other."""
_LOG4J = """\
rootLogger.level = error
rootLogger.appenderRef.file.ref = file
appender.file.type = Console
appender.file.name = file
appender.file.target = SYSTEM_ERR
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{ISO8601} %p %c{1}: %m%n%ex
"""


EXECUTOR_S = 120.0
"""Longest wait for an executor of another master, in seconds."""
USER_S = 10.0
"""Longest wait for the end of a thread whose jobs were cancelled, in seconds."""
CANCEL_EVERY_S = 0.1


class JavaMissing(StreamquakeError):
    """Spark cannot run on this machine; the message names what to install."""

    kind = ErrorKind.MACHINE_UNSUITABLE


class SparkMasterError(StreamquakeError, ConnectionError):
    """A master other than this process is unreachable, or provides no executor."""

    kind = ErrorKind.CLUSTER_FAILED

    def __init__(self, master: str, message: str) -> None:
        super().__init__(
            f"{master}: {message}; inspect its log. It needs the same release of Spark as here, "
            f"{importlib.metadata.version('pyspark')}, a worker with enough memory (`--conf "
            "spark.executor.memory=512m`), and a route to this machine (`--conf "
            "spark.driver.host=ADDRESS`)"
        )


def spark_session(
    master: str = "local[*]",
    jars: Sequence[Path] = (),
    *,
    memory_mb: int = DRIVER_MEMORY_MB,
    small: bool = True,
    settings: Mapping[str, str] | None = None,
    archive_to: Path | None = None,
) -> SparkSession:
    """Start a session. Raises JavaMissing where Java is missing or the virtual machine dies.

    With a master other than `local` it waits for an executor; raises SparkMasterError where none
    registers. `small` chooses the quick compiler and collector: half the time for a million
    records, but twice the time for ten million, so pass False for more data. `settings` are
    settings of Spark that override those of this file. With `archive_to`, the virtual machine
    writes its class archive into this file when it ends.
    """
    java = find_java()
    folder = Path(tempfile.mkdtemp(prefix="streamquake-spark-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / "log4j2.properties").write_text(_LOG4J, encoding="utf-8")
    options = [f"-Dlog4j2.configurationFile={folder}/log4j2.properties"]
    options += [f"-Djava.io.tmpdir={folder}", f"-Dderby.system.home={folder}"]
    options += ["-XX:-UsePerfData"]
    options += ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"] if small else ["-XX:+UseParallelGC"]
    options += options_to_write_archive(archive_to) if archive_to else options_to_use_archive(java)
    conf = SparkConf(loadDefaults=False)
    conf.setAll(list({**_settings(master, jars, memory_mb, folder), **(settings or {})}.items()))
    conf.set("spark.driver.extraJavaOptions", shlex.join(options))
    if is_local(master):
        # Spark runs its Python code in this interpreter, which has the packages.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        with _last_on_class_path(jars):
            return _start(conf, folder)
    return _start_on_master(master, lambda: _start(conf, folder))


def runs_here(session: SparkSession) -> bool:
    """Whether the session runs all tasks on this machine, with its packages and files."""
    return is_local(str(session.sparkContext.master))


def is_local(master: str) -> bool:
    """Whether a master is this process itself."""
    return master.startswith("local") and not master.startswith("local-cluster")


def find_java() -> str:
    """The path of the command that starts Java. Raises JavaMissing where there is none."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=f"{home}/bin" if home else None)
    if java is None:
        place = f"JAVA_HOME={home}" if home else "PATH"
        raise JavaMissing(
            f"Spark needs Java 17 or later, and no `java` was found in {place}; install one "
            "(Debian: apt-get install openjdk-17-jre-headless, macOS: brew install openjdk@17)"
        )
    return java


def _settings(master: str, jars: Sequence[Path], memory_mb: int, folder: Path) -> dict[str, str]:
    if is_local(master):
        shipped = {"spark.driver.host": "127.0.0.1"}
        shipped["spark.python.daemon.module"] = PYTHON_DAEMON
    else:
        shipped = {"spark.jars": ",".join(map(str, jars))}
    return {
        "spark.master": master,
        "spark.app.name": "streamquake",
        "spark.driver.memory": f"{memory_mb}m",
        "spark.driver.bindAddress": "127.0.0.1" if is_local(master) else "0.0.0.0",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.local.dir": str(folder),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.shuffle.partitions": str(SHUFFLE_PARTITIONS),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.enabled": "true",
        # A session that judges hundreds of runs must keep no history of its queries.
        "spark.sql.ui.retainedExecutions": "1",
        "spark.sql.maxPlanStringLength": "10000",
        "spark.ui.retainedJobs": "1",
        "spark.ui.retainedStages": "1",
        "spark.ui.retainedTasks": "100",
        # `${env:NAME}` within SQL stays text, so SQL cannot read the environment of this machine.
        "spark.sql.variable.substitute": "false",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # Otherwise each call of a function records its line of Python: a third of the time of a
        # plan.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        # To compress frames that are read twice takes longer than to read them.
        "spark.sql.inMemoryColumnarStorage.compressed": "false",
        **shipped,
    }


@contextmanager
def _last_on_class_path(jars: Sequence[Path]) -> Iterator[None]:
    """Have Spark's launcher put these jars behind its own. Before them, the class archive
    (`class_archive.py`) would not fit. Jars of this machine come last: they may be older."""
    before = {name: os.environ.get(name) for name in (LAST_ON_CLASS_PATH, ENV_LOADED)}
    others = filter(None, [before[LAST_ON_CLASS_PATH]])
    os.environ[LAST_ON_CLASS_PATH] = os.pathsep.join([*map(str, jars), *others])
    os.environ[ENV_LOADED] = "1"
    try:
        yield
    finally:
        for name, value in before.items():
            del os.environ[name]
            if value is not None:
                os.environ[name] = value


def _start_on_master(master: str, start: Callable[[], SparkSession]) -> SparkSession:
    try:
        session = start()
        await_executor(session, SystemClock())
    except NotReadyInTime as error:
        stop_spark(session)
        raise SparkMasterError(master, str(error)) from error
    except Py4JError as error:
        raise SparkMasterError(master, "it did not accept the application") from error
    return session


def await_executor(session: SparkSession, clock: Clock) -> None:
    """Wait until an executor has registered beside the driver. Raises NotReadyInTime."""
    context: Any = session.sparkContext

    def pending() -> str | None:
        stores = context._jsc.sc().getExecutorMemoryStatus().size()
        return None if stores > 1 else "no executor has registered"

    wait_until(pending, what="executor", limit_s=EXECUTOR_S, clock=clock, every_s=0.2)


def _start(conf: SparkConf, folder: Path) -> SparkSession:
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        # These loggers also write each raised error to the standard error, as JSON with its stack
        # trace.
        PySparkLogger.getLogger(name).disabled = True
    log = folder / "jvm.log"
    before = signal.getsignal(signal.SIGINT)
    with log.open("w", encoding="utf-8") as output:
        try:
            quiet = {"stdout": output, "stderr": subprocess.STDOUT}
            gateway = launch_gateway(conf=conf, popen_kwargs=quiet)  # type: ignore[no-untyped-call]
        except PySparkRuntimeError as error:
            tail = log.read_text(encoding="utf-8", errors="replace")[-2000:].strip()
            raise JavaMissing(
                "Spark's virtual machine did not start; Java 17 or later is needed (see "
                f"`java -version`). Its log ends: {tail or error}"
            ) from error
    context = SparkContext(gateway=gateway, conf=conf)
    _keep_classes(context._jvm)
    session = SparkSession(context)
    if threading.current_thread() is threading.main_thread():
        # SparkContext installs its own handler of SIGINT; the harness needs its own, to heal.
        signal.signal(signal.SIGINT, before)
    return session


def _keep_classes(jvm: Any) -> None:
    """Look up once the classes that pyspark looks up at each call; each time the virtual machine
    searches hundreds of archives."""
    for names in FREQUENT_CLASSES:
        holder = jvm
        for name in names:
            found = getattr(holder, name)
            setattr(holder, name, found)
            holder = found


def stop_spark(session: SparkSession) -> None:
    """End a session and its virtual machine, so that this process can start another one."""
    gateway = session.sparkContext._gateway
    session.stop()
    if gateway is not None:
        gateway.shutdown()
        if (process := getattr(gateway, "proc", None)) is not None:
            process.stdin.close()
            process.wait()
    SparkContext._gateway = SparkContext._jvm = None


class SparkInBackground:
    """A session that starts in a thread while the caller does other work."""

    def __init__(
        self,
        master: str = "local[*]",
        jars: Callable[[], Sequence[Path]] = spark_jars,
        start: Callable[[str, Sequence[Path]], SparkSession] = spark_session,
    ) -> None:
        self._start_session: Callable[[], SparkSession] = lambda: start(master, jars())
        self._session: SparkSession | None = None
        self._error: Exception | None = None
        self._thread: threading.Thread | None = None
        self._user: threading.Thread | None = None
        self.is_warm = False
        """Whether an earlier run has used the session."""

    def start(self) -> None:
        """Begin to start the session. A second call does nothing."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="spark", daemon=True)
            self._thread.start()

    def get(self) -> SparkSession:
        """Start the session if needed, wait for it and return it, for the caller alone: what else
        uses it is cancelled. Raises the error of its start."""
        session = self._started()
        self._cancel_use(session)
        return session

    def use(self, work: Callable[[SparkSession], None]) -> None:
        """Start the session if needed, and let `work` use it in another thread until a caller gets
        it. Its errors have no effect."""

        def run() -> None:
            with suppress(Exception):
                work(self._started())

        self.start()
        self._user = threading.Thread(target=run, name="spark user", daemon=True)
        self._user.start()

    def reset(self) -> None:
        """Drop what the last run has cached, so that the next one can use the session. A session
        whose start failed or whose virtual machine has ended is started again by the next
        `start`."""
        if self._thread is None:
            return
        self._thread.join()
        try:
            if self._session is not None:
                self._session.catalog.clearCache()
                self.is_warm = True
                return
        except (Py4JError, OSError):
            self.stop()
        self._thread = self._error = None
        self.is_warm = False

    def stop(self) -> None:
        """End the session and its virtual machine, if it started. A second call does nothing."""
        if self._thread is not None:
            self._thread.join()
        if self._session is not None:
            stop_spark(self._session)
            self._session = None
        if self._user is not None:
            # Without its session it fails at its next call. It must not use the next session.
            self._user.join(USER_S)

    def _started(self) -> SparkSession:
        self.start()
        assert self._thread is not None
        self._thread.join()
        if self._session is None:
            raise self._error or JavaMissing("the Spark session was stopped")
        return self._session

    def _cancel_use(self, session: SparkSession) -> None:
        """Cancel the jobs of what uses the session, until its thread has ended."""
        user, self._user = self._user, None
        ends_s = time.monotonic() + USER_S
        while user is not None and user.is_alive() and time.monotonic() < ends_s:
            session.sparkContext.cancelAllJobs()
            user.join(CANCEL_EVERY_S)

    def _run(self) -> None:
        try:
            self._session = self._start_session()
        except Exception as error:  # noqa: BLE001 - raised again by get()
            self._error = error
