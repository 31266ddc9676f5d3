"""The pytest plugin: chaos experiments as tests.

    @pytest.mark.chaos("kill-taskmanager-mid-checkpoint")
    def test_survives_a_kill(chaos_run):
        assert chaos_run.results.recovery["first_output_s"] < 30

The marker names an experiment, or defines one by `topology=`, `job=`, `workload=`, `schedule=` and
`checks=`; every other keyword sets one value of the experiment (`job__parallelism=2`). A run whose
outcome is violated, or not the expected one, fails the test; an undecided run is an error with its
reason; both show the run folder and the replay command. `chaos_cluster` only deploys the marked
topology.

Pytest loads this module in every session of an environment, so it imports the library only when a
test uses it.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from streamquake.harness.interactive.topology_container import TopologyContainer
    from streamquake.harness.pytest.session import ChaosSession
    from streamquake.harness.pytest.support import ChaosRun, ChaosRunner, RunSettings

SEED: pytest.StashKey[int] = pytest.StashKey()
"""The seed of the session: the one that was given, else a drawn one."""
WORKER_SEED = "chaos_seed"
"""The key of the seed among what pytest-xdist gives its workers."""
RUN: pytest.StashKey[ChaosRun] = pytest.StashKey()
MARKER = (
    "chaos(experiment=None, *, topology=None, job=None, workload=None, schedule=(), checks=(), "
    "**sets): the experiment that `chaos_run` runs, or the topology of `chaos_cluster`"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("chaos", "chaos experiments (streamquake)")
    group.addoption(
        "--chaos-seed",
        type=int,
        metavar="N",
        help="seed of every chaos run; it wins over those of markers and documents",
    )
    group.addoption(
        "--chaos-repeats",
        type=_positive,
        metavar="N",
        help="run each chaos test N times, each time with the next seed",
    )
    group.addoption(
        "--chaos-attempts",
        type=_positive,
        metavar="N",
        help="try an undecided run again, up to N times in all",
    )
    group.addoption("--chaos-out", metavar="DIR", help="folder of the run folders, or `runs`")
    group.addoption("--chaos-keep", action="store_true", help="leave the clusters up")
    group.addoption(
        "--chaos-own-clusters",
        action="store_true",
        help="give every run a cluster of its own; by default runs on equal topologies share one",
    )
    group.addoption(
        "--chaos-runtime",
        choices=("docker", "fake"),
        default="docker",
        help="the container runtime; the fake runs no containers",
    )
    group.addoption(
        "--chaos-plugin",
        action="append",
        default=[],
        metavar="FILE",
        help="a Python file that registers faults, checks, ...; may be repeated",
    )
    parser.addini("chaos_repeats", "the default of --chaos-repeats", default="1")
    parser.addini("chaos_attempts", "the default of --chaos-attempts", default="1")
    parser.addini("chaos_out", "the default of --chaos-out, from the folder of this file")
    parser.addini(
        "chaos_own_clusters", "the default of --chaos-own-clusters", type="bool", default=False
    )


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError("expected 1 or more")
    return number


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Repeat the tests that use `chaos_run`."""
    if "chaos_repeat" not in metafunc.fixturenames:
        return
    repeats = _number(metafunc.config, "chaos_repeats")
    if repeats > 1:
        ids = [f"repeat {number}" for number in range(1, repeats + 1)]
        metafunc.parametrize("chaos_repeat", range(repeats), indirect=True, ids=ids)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)
    config.stash[SEED] = _session_seed(config)
    if files := config.getoption("--chaos-plugin"):
        _load_plugins(config.invocation_params.dir / file for file in files)


def _session_seed(config: pytest.Config) -> int:
    given: int | None = config.getoption("--chaos-seed")
    if given is not None:
        return given
    of_worker: int | None = getattr(config, "workerinput", {}).get(WORKER_SEED)
    return secrets.randbelow(2**31) if of_worker is None else of_worker


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Give each worker of pytest-xdist the seed that the header shows."""
    node.workerinput[WORKER_SEED] = node.config.stash[SEED]


def _number(config: pytest.Config, name: str) -> int:
    """The value of an option of one or more, else that of the configuration file."""
    given: int | None = config.getoption(f"--{name.replace('_', '-')}")
    if given is not None:
        return given
    text: str = config.getini(name)
    try:
        return _positive(text)
    except ValueError as error:
        raise pytest.UsageError(f"{name}: expected a number of 1 or more, got {text}") from error


def _out(config: pytest.Config) -> Path:
    """The parent of the run folders."""
    if given := config.getoption("--chaos-out"):
        return Path(given)
    configured: str = config.getini("chaos_out")
    if not configured:
        return Path("runs")
    return (config.inipath.parent if config.inipath else config.rootpath) / configured


def _load_plugins(files: Iterable[Path]) -> None:
    from streamquake.topologies.plugins import plugins
    from streamquake.topologies.problems import BadInput

    for file in files:
        try:
            plugins.load_file(file)
        except BadInput as error:
            raise pytest.UsageError(str(error)) from error


def pytest_report_header(config: pytest.Config) -> str:
    return f"chaos: seed {config.stash[SEED]} (again with --chaos-seed={config.stash[SEED]})"


@pytest.fixture(scope="session")
def chaos_session(
    pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ChaosSession]:
    """What the chaos tests of a session share: one Spark session, and one cluster while their
    topologies are equal. After each run the cluster is proven to be as new, or replaced."""
    from streamquake.harness.pytest import support
    from streamquake.harness.pytest.session import ChaosSession

    # The temporary folders of all workers of pytest-xdist have the same parent.
    is_worker = hasattr(pytestconfig, "workerinput")
    shared = tmp_path_factory.getbasetemp().parent / "chaos-clusters" if is_worker else None
    session = ChaosSession(
        runtime_name=pytestconfig.getoption("--chaos-runtime"),
        out=_out(pytestconfig),
        keep=pytestconfig.getoption("--chaos-keep"),
        own_clusters=pytestconfig.getoption("--chaos-own-clusters")
        or pytestconfig.getini("chaos_own_clusters"),
        shared=shared,
        show_message=support.show_message,
    )
    yield session
    if failures := session.end():
        support.fail_on_leftovers(failures)


@pytest.fixture
def chaos_repeat(request: pytest.FixtureRequest) -> int:
    """Which repeat of the test it is, from 0 on."""
    repeat: int = getattr(request, "param", 0)
    return repeat


@pytest.fixture
def chaos_run(
    request: pytest.FixtureRequest, chaos_session: ChaosSession, chaos_repeat: int
) -> ChaosRun:
    """The run of the marked experiment, judged: `results`, `folder` and `experiment`. An undecided
    run is tried again up to --chaos-attempts times."""
    from streamquake.harness.pytest import rates, support

    for _ in range(_number(request.config, "chaos_attempts")):
        run = support.run_experiment(
            _marker(request), chaos_session, _settings(request, chaos_repeat)
        )
        outcome = str(run.results.outcome)
        request.node.user_properties.append(
            rates.property_of(
                request.node.nodeid,
                run.results.run_id,
                as_expected=run.as_expected,
                outcome=outcome,
            )
        )
        request.node.user_properties.append(("chaos seed", run.experiment.seed))
        if not run.undecided:
            break
    request.node.stash[RUN] = run
    if run.undecided:
        pytest.fail(run.verdict, pytrace=False)
    return run


@pytest.fixture(scope="session")
def chaos_runner(chaos_session: ChaosSession) -> ChaosRunner:
    """Runs an experiment with a schedule, such as one that Hypothesis draws (`schedules.py`), and
    returns its run. A violated run fails the test; an undecided one is no example."""
    from streamquake.harness.pytest.support import ChaosRunner

    return ChaosRunner(chaos_session)


@pytest.fixture
def chaos_cluster(
    request: pytest.FixtureRequest, chaos_session: ChaosSession
) -> Iterator[TopologyContainer]:
    """A running cluster of the marked topology, with `fault` and `check`; removed after the test
    unless --chaos-keep is set."""
    from streamquake.harness.pytest import support

    with support.deploy_cluster(_marker(request), chaos_session, _settings(request)) as cluster:
        yield cluster


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    """Fail the test on a wrong outcome here: raised in the fixture, it would be an error of
    set-up."""
    run = item.stash.get(RUN, None)
    if run is not None and not run.as_expected:
        pytest.fail(run.verdict, pytrace=False)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Add the summary of a failed run as a section of its own."""
    outcome: Any = yield
    report: pytest.TestReport = outcome.get_result()
    run = item.stash.get(RUN, None)
    if run is not None and report.failed:
        report.sections.append(("chaos run", run.summary))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show the rate of each chaos test with several runs."""
    stats = terminalreporter.stats.values()
    reports = [each for found in stats for each in found if isinstance(each, pytest.TestReport)]
    if not any(report.user_properties for report in reports):
        return  # without a chaos test nothing is imported
    from streamquake.harness.pytest import rates

    if lines := list(rates.rate_lines(reports)):
        terminalreporter.section("chaos runs")
        for line in lines:
            terminalreporter.write_line(line)


def _marker(request: pytest.FixtureRequest) -> pytest.Mark:
    marker: pytest.Mark | None = request.node.get_closest_marker("chaos")
    if marker is None:
        raise pytest.UsageError(
            f"{request.node.nodeid} uses {request.fixturename} and has no chaos marker; "
            '@pytest.mark.chaos("quickstart") adds one'
        )
    return marker


def _settings(request: pytest.FixtureRequest, repeat: int = 0) -> RunSettings:
    """Where the files of a test are, and its seed: that of --chaos-seed, else that of the marker or
    of the document, else the session's."""
    from streamquake.harness.pytest.support import RunSettings

    return RunSettings(
        beside=request.path.parent,
        session_seed=request.config.stash[SEED],
        seed_wins=request.config.getoption("--chaos-seed") is not None,
        repeat=repeat,
    )
