"""The plugin in an inner pytest session, on a fake runner that returns results at once."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points

import pytest

# Imported in the outer session; otherwise every inner session would import the library again.
from streamquake.cluster.engines.engine import engines
from streamquake.faults.fault import faults
from streamquake.harness.experiment.check import checks
from streamquake.harness.experiment.workload import workloads
from streamquake.harness.project.project import write_project
from streamquake.harness.pytest import rates, support  # noqa: F401
from streamquake.topologies.plugins import Plugins
from tests.plugin_files import write, write_check

pytestmark = pytest.mark.slow

pytest_plugins = ["pytester"]
# A registry imports its members at its first use, and pytester removes the modules that an inner
# session imported: their source would no longer be found.
for registry in (checks, faults, workloads, engines):
    assert list(registry)

PLUGIN = "streamquake.harness.pytest.plugin"

CONFTEST = """
    import dataclasses

    import pytest

    from streamquake.harness.run import runner
    from streamquake.harness.experiment.loader import experiment_document
    from streamquake.reports.record.outcome import CheckResult, Finding, Outcome
    from streamquake.reports.record.results import Results
    from streamquake.reports.record.run_folder import RunFolder

    calls = []
    leases = []

    @pytest.fixture(autouse=True)
    def quick_runner(monkeypatch, request):
        def run(experiment, *, out, argv, keep, view, runtime, clock, **shared):
            calls.append((experiment, keep, type(runtime).__name__))
            leases.append((shared["cluster_leases"], shared["shared_spark"]))
            folder = RunFolder.create(out, f"run-{len(list(out.glob('run-*')))}")
            folder.write_manifest({"experiment": experiment_document(experiment), "seed": 1})
            outcome = Outcome.parse(OUTCOMES[min(len(calls), len(OUTCOMES)) - 1])
            results = Results(
                run_id=folder.run_id, experiment=experiment.name, seed=experiment.seed,
                ended="completed", outcome=outcome, expected=experiment.expected,
                checks=(
                    CheckResult(
                        check="exactly_once", outcome=outcome, summary="3 records lost",
                        findings=(Finding(what=FOUND, where="key 7"),),
                    ),
                ),
                recovery={"first_output": 12.0}, replay=f"streamquake replay {folder.path}",
            )
            folder.write_results(results)
            return results

        monkeypatch.setattr(runner, "run", run)
"""


def prepare(pytester: pytest.Pytester, outcome: str, tests: str, found: str = "lost") -> None:
    """`outcome` is that of every run, or those of the first runs in turn, between commas."""
    outcomes = outcome.split(",")
    pytester.makeconftest(CONFTEST + f"\n    OUTCOMES, FOUND = {outcomes!r}, {found!r}\n")
    pytester.makepyfile(tests)


def is_installed() -> bool:
    return any(point.value == PLUGIN for point in entry_points(group="pytest11"))


def run_inner(pytester: pytest.Pytester, *options: str) -> pytest.RunResult:
    """Run the inner session. Of its own plugins, `unraisableexception` collects garbage five times,
    of everything that the outer session holds too."""
    options = options if is_installed() else ("-p", PLUGIN, *options)
    without = ("-p", "no:cacheprovider", "-p", "no:unraisableexception")
    return pytester.runpytest_inprocess(*without, "--chaos-out=runs", *options)


ONE_TEST = """
    import pytest

    @pytest.mark.chaos("quickstart")
    def test_it(chaos_run):
        assert chaos_run.results.recovery["first_output"] < 30
        assert chaos_run.folder.manifest.exists()
"""


def test_the_body_of_a_test_runs_after_a_held_run(pytester: pytest.Pytester) -> None:
    prepare(pytester, "held", ONE_TEST)

    result = run_inner(pytester, "--chaos-seed=41")

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["chaos: seed 41 (again with --chaos-seed=41)"])


SEEDED = """
    from pathlib import Path
    import pytest

    MINE = {"topology": "kafka-only", "workload": {"numbered": {"records": 9, "rate_per_s": 9}}}

    @pytest.mark.chaos("quickstart", seed=7)
    def test_marked(chaos_run):
        assert chaos_run.experiment.seed == MARKED

    @pytest.mark.chaos("seeded.yaml")
    def test_of_a_document(chaos_run):
        assert chaos_run.experiment.seed == OF_DOCUMENT

    @pytest.mark.chaos("variant.yaml")
    def test_of_a_base(chaos_run):
        assert chaos_run.experiment.seed == OF_DOCUMENT

    @pytest.mark.chaos("seeded.yaml", seed=7)
    def test_marked_document(chaos_run):
        assert chaos_run.experiment.seed == MARKED

    @pytest.mark.chaos(**MINE)
    def test_without(chaos_run, request):
        Path("seed").write_text(str(chaos_run.experiment.seed))
        assert dict(request.node.user_properties)["chaos seed"] == chaos_run.experiment.seed
"""


def prepare_seeded(pytester: pytest.Pytester, marked: int, of_document: int) -> None:
    prepare(pytester, "held", SEEDED + f"\n    MARKED, OF_DOCUMENT = {marked}, {of_document}\n")
    document = "topology: kafka-only\nworkload: {numbered: {records: 9, rate_per_s: 9}}\nseed: 3\n"
    pytester.path.joinpath("seeded.yaml").write_text(f"name: seeded\n{document}")
    pytester.path.joinpath("variant.yaml").write_text("base: seeded.yaml\nname: variant\n")


def test_without_the_option_marker_and_document_choose_the_seed(pytester: pytest.Pytester) -> None:
    prepare_seeded(pytester, 7, 3)
    result = run_inner(pytester)
    result.assert_outcomes(passed=5)
    drawn = pytester.path.joinpath("seed").read_text()
    result.stdout.fnmatch_lines([f"chaos: seed {drawn} (again with --chaos-seed={drawn})"])


def test_the_seed_of_the_option_wins(pytester: pytest.Pytester) -> None:
    prepare_seeded(pytester, 41, 41)
    run_inner(pytester, "--chaos-seed=41").assert_outcomes(passed=5)
    assert pytester.path.joinpath("seed").read_text() == "41"


@pytest.mark.process
def test_the_header_shows_the_seed_of_all_workers(pytester: pytest.Pytester) -> None:
    prepare_seeded(pytester, 7, 3)
    result = run_inner(pytester, "-p", "xdist", "-n", "2", "-k", "without or marked")
    result.assert_outcomes(passed=3)
    drawn = pytester.path.joinpath("seed").read_text()
    result.stdout.fnmatch_lines([f"chaos: seed {drawn} *"])


def test_a_configuration_file_has_the_defaults_of_options(pytester: pytest.Pytester) -> None:
    prepare(pytester, "undecided,held", ONE_TEST)
    pytester.makeini("[pytest]\nchaos_repeats = 2\nchaos_attempts = 3\nchaos_out = there/runs\n")
    plugin = () if is_installed() else ("-p", PLUGIN)
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider", *plugin)
    result.assert_outcomes(passed=2)
    folders = sorted(path.name for path in pytester.path.glob("there/runs/run-*"))
    assert folders == ["run-0", "run-1", "run-2"]
    assert run_inner(pytester, "--chaos-repeats=1").parseoutcomes() == {"passed": 1}


@pytest.mark.parametrize("name", ["chaos_repeats", "chaos_attempts"])
def test_a_wrong_default_is_rejected(pytester: pytest.Pytester, name: str) -> None:
    prepare(pytester, "held", ONE_TEST)
    pytester.makeini(f"[pytest]\n{name} = none\n")
    result = run_inner(pytester)
    assert result.ret != 0
    result.stdout.fnmatch_lines([f"*{name}: expected a number of 1 or more, got none*"])


def test_warnings_may_be_errors(pytester: pytest.Pytester) -> None:
    prepare(pytester, "held", ONE_TEST)
    run_inner(pytester, "-W", "error").assert_outcomes(passed=1)


def test_a_failed_body_shows_the_run(pytester: pytest.Pytester) -> None:
    prepare(pytester, "held", ONE_TEST.replace("< 30", "< 3"))

    result = run_inner(pytester)

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*chaos run*", "*replay *streamquake replay *run-0*"])


def test_a_violated_run_fails_with_findings_folder_and_replay(pytester: pytest.Pytester) -> None:
    prepare(pytester, "violated", ONE_TEST)

    result = run_inner(pytester)

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["*violated*", "*chaos run*", "*lost at key 7*", "*run folder*run-0*", "*replay *run-0*"]
    )


def test_an_undecided_run_is_an_error_with_its_reason(pytester: pytest.Pytester) -> None:
    prepare(pytester, "undecided", ONE_TEST)

    result = run_inner(pytester)

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*undecided*", "*chaos run*", "*run folder*run-0*"])


def test_a_canary_passes_only_if_its_class_is_found(
    pytester: pytest.Pytester,
) -> None:
    canary = ONE_TEST.replace("quickstart", "canary")
    prepare(pytester, "violated", canary, found="duplicated")
    run_inner(pytester).assert_outcomes(passed=1)

    prepare(pytester, "violated", canary, found="lost")
    run_inner(pytester).assert_outcomes(failed=1)

    prepare(pytester, "held", canary)
    run_inner(pytester).assert_outcomes(failed=1)


def test_an_undecided_run_may_be_tried_again(pytester: pytest.Pytester) -> None:
    prepare(pytester, "undecided,held", ONE_TEST)

    result = run_inner(pytester, "--chaos-attempts=3")

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        [
            "*= chaos runs =*",
            "flaky: *.py::test_it: 1 of 2 (9% to 91%) runs as expected",
        ]
    )
    assert len(list((pytester.path / "runs").glob("run-*"))) == 2


def test_attempts_end_with_an_error(pytester: pytest.Pytester) -> None:
    prepare(pytester, "undecided", ONE_TEST)
    result = run_inner(pytester, "--chaos-attempts=2")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*.py::test_it: 0 of 2 (0% to 66%) runs as expected"])
    result.stdout.no_fnmatch_line("*flaky*")


def test_a_violated_run_is_not_tried_again(pytester: pytest.Pytester) -> None:
    prepare(pytester, "violated,held", ONE_TEST)
    result = run_inner(pytester, "--chaos-attempts=2")
    result.assert_outcomes(failed=1)
    result.stdout.no_fnmatch_line("*chaos runs*")


PARAMETRIZED = """
    import pytest

    SEEDS = set()

    @pytest.mark.chaos("quickstart")
    @pytest.mark.parametrize("side", ["left", "right"])
    def test_it(chaos_run, side):
        SEEDS.add(chaos_run.experiment.seed)

    def test_another():
        assert SEEDS == {41, 42, 43}
"""


def test_tests_may_be_repeated_with_the_next_seeds(pytester: pytest.Pytester) -> None:
    prepare(pytester, "held,violated,held", PARAMETRIZED)

    result = run_inner(pytester, "--chaos-repeats=3", "--chaos-seed=41")

    result.assert_outcomes(passed=6, failed=1)
    result.stdout.fnmatch_lines_random(
        [
            "*.py::test_it[[]left]: * of 3 * runs as expected",
            "*.py::test_it[[]right]: * of 3 * runs as expected",
        ]
    )
    assert result.stdout.str().count("flaky: ") == 1


@pytest.mark.parametrize("option", ["--chaos-repeats", "--chaos-attempts"])
def test_less_than_one_run_is_rejected(pytester: pytest.Pytester, option: str) -> None:
    prepare(pytester, "held", ONE_TEST)
    result = run_inner(pytester, f"{option}=0")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*argument {option}: invalid*value: '0'*"])


SHARED_TESTS = """
    import pytest
    from conftest import leases

    @pytest.mark.chaos("quickstart")
    def test_first(chaos_run): pass

    @pytest.mark.chaos("quickstart")
    def test_second(chaos_run):
        (first, spark), (second, same) = leases
        assert spark is same is not None
        assert (first is second is not None) is SHARED
"""


@pytest.mark.parametrize(
    ("options", "shared"),
    [((), True), (("--chaos-own-clusters",), False), (("--chaos-keep",), False)],
)
def test_the_runs_of_a_session_share_clusters_and_spark(
    pytester: pytest.Pytester, options: tuple[str, ...], shared: bool
) -> None:
    prepare(pytester, "held", SHARED_TESTS.replace("SHARED", str(shared)))
    run_inner(pytester, *options).assert_outcomes(passed=2)


def test_keywords_define_an_experiment_and_set_values(pytester: pytest.Pytester) -> None:
    prepare(
        pytester,
        "held",
        """
        import pytest
        from conftest import calls

        @pytest.mark.chaos(
            topology="kafka-only",
            schedule=[{"kill": {}, "target": "one of kafka/broker", "at_s": 1, "for_s": 1}],
            checks=["progress"],
            limits__ready_s=7,
        )
        def test_defined(chaos_run):
            experiment, keep, runtime = calls[-1]
            assert experiment.topology.name == "kafka-only"
            assert experiment.faults[0].fault == "kill"
            assert [check.name for check in experiment.checks] == ["progress"]
            assert experiment.limits.ready_s == 7
            assert experiment.seed == 5
            assert (keep, runtime) == (True, "FakeRuntime")

        @pytest.mark.chaos("quickstart", checks=["progress"], job__parallelism=1)
        def test_changed(chaos_run):
            assert chaos_run.experiment.name == "quickstart"
            assert [check.name for check in chaos_run.experiment.checks] == ["progress"]
            assert chaos_run.experiment.job.parallelism == 1
        """,
    )

    result = run_inner(pytester, "--chaos-seed=5", "--chaos-keep", "--chaos-runtime=fake")

    result.assert_outcomes(passed=2)


@pytest.mark.parametrize(
    ("marker", "message"),
    [
        ('"quikstart"', '*did you mean "quickstart"*'),
        ('"quickstart", job__paralelism=1', '*did you mean "parallelism"*'),
        ('"quickstart", checks=["exactly_one"]', "*no check is called*"),
        ('topology="kafka-onyl"', '*did you mean "kafka-only"*'),
    ],
)
def test_bad_input_is_reported_without_a_traceback(
    pytester: pytest.Pytester, marker: str, message: str
) -> None:
    prepare(pytester, "held", ONE_TEST.replace('"quickstart"', marker))

    result = run_inner(pytester)

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([message])
    result.stdout.no_fnmatch_line("*Traceback*")


def test_a_plugin_file_registers_members_for_the_session(
    pytester: pytest.Pytester, without_plugins: Plugins
) -> None:
    write_check(pytester.path / "own.py")
    test = ONE_TEST.replace('"quickstart"', '"quickstart", checks=["few_events"]')
    prepare(pytester, "held", test)

    run_inner(pytester, "--chaos-plugin=own.py").assert_outcomes(passed=1)
    assert [plugin.name for plugin in without_plugins.loaded()] == ["own.py"]


def test_a_plugin_file_that_cannot_be_imported_ends_the_session(
    pytester: pytest.Pytester, without_plugins: Plugins
) -> None:
    write(pytester.path / "own.py", "import no_such_module")
    prepare(pytester, "held", ONE_TEST)

    result = run_inner(pytester, "--chaos-plugin=own.py")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: plugin *own.py: cannot be imported (*no_such_module'"])


@pytest.mark.parametrize(("outcome", "passed"), [("held", 2), ("violated", 0)])
def test_the_tests_of_a_new_project_run_and_judge(
    outcome: str, passed: int, pytester: pytest.Pytester
) -> None:
    write_project(pytester.path)
    prepare(pytester, outcome, "")
    conftest = pytester.path / "conftest.py"
    figures = conftest.read_text("utf-8").replace('"first_output"', '"restarted_s"')
    conftest.write_text(figures, "utf-8")

    run_inner(pytester, "chaos").assert_outcomes(passed=passed, failed=2 - passed)


DRAWN = """
    from hypothesis import Phase, given, settings
    from streamquake.harness.experiment.loader import load_experiment
    from streamquake.harness.pytest.schedules import schedules

    QUICKSTART, RUNS = load_experiment("quickstart", seed=7), []

    @settings(max_examples=3, deadline=None, phases=[Phase.generate], database=None)
    @given(schedule=schedules(QUICKSTART))
    def test_it(chaos_runner, schedule):
        run = chaos_runner(QUICKSTART, schedule)
        assert run.experiment.faults == schedule
        RUNS.append(run.results.run_id)

    def test_all_were_run():
        assert len(RUNS) == EXAMPLES

    def test_the_schedule_of_the_experiment_is_the_default(chaos_runner):
        assert chaos_runner(QUICKSTART).experiment == QUICKSTART
"""


@pytest.mark.parametrize(
    ("outcomes", "examples", "passed", "failed"),
    [
        ("held", 3, 3, 0),
        # The second example is undecided, so that another one is tried.
        ("held,undecided,held", 3, 3, 0),
        ("violated", 0, 1, 2),
    ],
)
def test_schedules_of_hypothesis_are_run(
    pytester: pytest.Pytester, outcomes: str, examples: int, passed: int, failed: int
) -> None:
    prepare(pytester, outcomes, DRAWN.replace("EXAMPLES", str(examples)))

    result = run_inner(pytester)

    result.assert_outcomes(passed=passed, failed=failed)
    if failed:
        result.stdout.fnmatch_lines(["*violated*", "*run folder: *"])


def test_an_undecided_run_without_hypothesis_fails(pytester: pytest.Pytester) -> None:
    prepare(pytester, "undecided", DRAWN.replace("EXAMPLES", "0"))

    result = run_inner(pytester, "-k", "default")

    result.assert_outcomes(failed=1, deselected=2)


def test_a_test_without_a_marker_fails_with_an_example(pytester: pytest.Pytester) -> None:
    prepare(pytester, "held", "def test_it(chaos_run):\n    assert chaos_run is not None\n")

    result = run_inner(pytester)

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*has no chaos marker*"])


def test_tests_without_the_fixtures_are_not_affected(pytester: pytest.Pytester) -> None:
    prepare(pytester, "violated", "def test_it():\n    assert 1 + 1 == 2\n")

    run_inner(pytester).assert_outcomes(passed=1)


def test_the_plugin_alone_imports_no_library() -> None:
    program = (
        "import sys, streamquake.harness.pytest.plugin as p; "
        "print([m for m in sys.modules if m.split('.')[0] in ('docker', 'pydantic', 'pyspark')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert done.stdout.strip() == "[]"
