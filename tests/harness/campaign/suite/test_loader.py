"""Loading suites: they are found and read, and every problem is reported with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamquake.harness.campaign.suite.loader import SUITES, load_suite
from streamquake.harness.campaign.suite.plan import chosen_rows, plan_suite
from streamquake.harness.experiment.loader import find_experiment
from streamquake.topologies.named_files import shipped_names
from streamquake.topologies.problems import BadInput

CLAIM = """
  - claim: it is so
    article: the article
    setting: on
    experiment: kill-taskmanager-mid-checkpoint
    control: quickstart
"""


SERIES = CLAIM + "    series: [{experiment: canary}]\n"
NOT_HERE = """
  - claim: it was so
    article: the article
    published: 11 times
    unavailable: no image of that version
"""


def suite(tmp_path: Path, rows: str, head: str = "name: mine") -> str:
    path = tmp_path / "mine.yaml"
    path.write_text(f"{head}\nrows:\n{rows}", "utf-8")
    return str(path)


def problems(tmp_path: Path, rows: str, head: str = "name: mine") -> list[str]:
    with pytest.raises(BadInput) as caught:
        load_suite(suite(tmp_path, rows, head))
    return [str(problem).removeprefix(f"{tmp_path}/") for problem in caught.value.problems]


@pytest.mark.parametrize("name", shipped_names(SUITES, ".yaml"))
def test_shipped_suites_are_valid(name: str) -> None:
    loaded = load_suite(name)
    assert loaded.name == name
    for row in loaded.rows:
        assert row.source.claim
        assert bool(row.source.figures) != bool(row.source.unavailable)
    assert plan_suite(loaded, seed=1).runs


def test_a_folder_is_a_suite_of_its_experiments(tmp_path: Path) -> None:
    folder = tmp_path / "nightly"
    folder.mkdir()
    for name in ("canary", "quickstart"):
        (folder / f"{name}.yaml").write_text(find_experiment(name).read_text(), "utf-8")
    (folder / "small.yaml").write_text("name: small\nservices: {}\n", "utf-8")
    suite(folder, "  - experiment: quickstart\n")
    loaded = load_suite(str(folder))
    assert loaded.name == "nightly"
    assert [row.names for row in loaded.rows] == [("canary",), ("quickstart",)]


def test_a_folder_without_experiments_and_one_with_a_broken_one_are_bad_input(
    tmp_path: Path,
) -> None:
    with pytest.raises(BadInput, match="no experiment"):
        load_suite(str(tmp_path))
    (tmp_path / "broken.yaml").write_text("name: broken\nworkload: {numbered: {}}\n", "utf-8")
    with pytest.raises(BadInput, match="expected the key `topology`"):
        load_suite(str(tmp_path))


def test_an_unknown_suite_is_an_error_with_the_shipped_names() -> None:
    with pytest.raises(BadInput, match=r'no suite is called "claim".*did you mean "claims"'):
        load_suite("claim")


def test_experiments_are_found_beside_the_suite(tmp_path: Path) -> None:
    text = find_experiment("quickstart").read_text("utf-8")
    (tmp_path / "own.yaml").write_text(text.replace("name: quickstart", "name: own"), "utf-8")
    (row,) = load_suite(suite(tmp_path, "  - experiment: own.yaml\n")).rows
    assert row.names == ("own",)


def test_all_problems_are_reported_at_once_with_their_lines(tmp_path: Path) -> None:
    rows = """  - experiment: quikstart
  - experimnt: quickstart
  - experiment: quickstart
    control: canary
    repeats: 0
  - claim: it is so
    article: the article
    experiment: quickstart
    figures: [recovery.restarted_s, checkpoint.median_ms, recovery]
"""
    found = problems(tmp_path, rows)
    assert any("mine.yaml:3: rows[0].experiment: no experiment" in line for line in found)
    assert any('did you mean "quickstart"' in line for line in found)
    assert any('rows[1].experimnt: unknown key "experimnt"' in line for line in found)
    assert any("rows[2].repeats: expected a number of at least 1, got 0" in line for line in found)
    assert any("rows[3]: a claim needs the key `setting`" in line for line in found)


def test_figures_must_be_those_of_the_checks_of_the_experiments(tmp_path: Path) -> None:
    rows = (
        CLAIM
        + """    figures: [recovery.restarted_s, recovry.restarted_s, lost]
    relations: [{figure: failover_scop.all, claim_at_least: 1}]
"""
    )
    found = problems(tmp_path, rows)
    assert len(found) == 3
    assert 'rows[0].figures[1]: "recovry.restarted_s": no check called "recovry"' in found[0]
    assert 'did you mean "recovery"?' in found[0]
    assert "expected CHECK.COUNT" in found[1]
    assert "rows[0].relations[0].figure" in found[2]


@pytest.mark.parametrize(
    ("rows", "messages"),
    [
        ("  - {experiment: quickstart, control: canary}\n", "`control` belongs to a claim"),
        (CLAIM + "    relations: [{figure: recovery.x_s}]\n", "at least one bound"),
        (
            CLAIM.replace("    control: quickstart\n", "")
            + "    relations: [{figure: recovery.x_s, control_at_least: 1}]\n",
            "expected the key `control`",
        ),
        (
            CLAIM + "    relations: [{figure: recovery.x_s, control_over_claim_at_least: 0}]\n",
            "expected a number above 0",
        ),
        ("  - {repeats: 2}\n", "expected the key `experiment`, or `unavailable`"),
        (NOT_HERE + "    control: quickstart\n", "`control` is not allowed in a row that is"),
        ("  - {unavailable: no image}\n", "needs the key `claim`"),
        ("  - {experiment: quickstart, published: 3 s}\n", "`published` belongs to a claim"),
        (SERIES, "`series` needs the key `slopes`"),
        (SERIES + "    slopes: [{figure: recovery.x_s, at_least: 1}]\n", "is over `at`"),
        (SERIES + "    slopes: [{figure: recovery.x_s}]\n", "at least one of `at_least`"),
        (
            SERIES.replace("canary", "canry")
            + "    slopes: [{figure: recovery.x_s, at_least: 1}]\n",
            "rows[0].series[0].experiment: no experiment",
        ),
        (
            SERIES + "    slopes: [{figure: recovery.x_s, over: recovry.y_s, at_least: 1}]\n",
            'rows[0].slopes[0].over: "recovry.y_s": no check called "recovry"',
        ),
    ],
)
def test_inconsistent_rows_are_rejected(tmp_path: Path, rows: str, messages: str) -> None:
    assert any(messages in line for line in problems(tmp_path, rows))


def test_a_series_is_run_and_has_a_slope(tmp_path: Path) -> None:
    rows = SERIES + "    slopes: [{figure: recovery.x_s, over: recovery.y_s, at_least: 1}]\n"
    (row,) = (loaded := load_suite(suite(tmp_path, rows))).rows
    assert row.names == ("kill-taskmanager-mid-checkpoint", "canary", "quickstart")
    runs = plan_suite(loaded, seed=1, repeats=2).runs
    roles = [(run.experiment.name, run.parts[0].role) for run in runs if run.repeat == 1]
    assert roles == [
        ("kill-taskmanager-mid-checkpoint", "claim"),
        ("canary", "series"),
        ("quickstart", "control"),
    ]


def test_a_claim_that_cannot_be_measured_has_no_runs(tmp_path: Path) -> None:
    loaded = load_suite(suite(tmp_path, NOT_HERE + CLAIM))
    assert loaded.rows[0].names == ()
    plan = plan_suite(loaded, seed=1)
    assert (len(plan.runs), plan.of_row(0)) == (2, ())


def test_a_suite_without_rows_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "none.yaml"
    path.write_text("name: none\nrows: []\n", "utf-8")
    with pytest.raises(BadInput, match="rows"):
        load_suite(str(path))


def test_a_problem_of_an_experiment_is_reported_once_with_its_own_file(tmp_path: Path) -> None:
    text = find_experiment("quickstart").read_text("utf-8")
    (tmp_path / "own.yaml").write_text(text.replace("kill: {}", "kil: {}"), "utf-8")
    found = problems(tmp_path, "  - experiment: own.yaml\n  - experiment: own.yaml\n")
    assert len([line for line in found if "own.yaml" in line and "kil" in line]) == 1


def test_runs_are_grouped_by_topology_and_none_is_repeated(tmp_path: Path) -> None:
    rows = """  - {experiment: quickstart}
  - {experiment: kill-jobmanager}
  - claim: it is so
    article: the article
    setting: on
    experiment: kill-taskmanager-mid-checkpoint
    control: quickstart
    repeats: 2
"""
    plan = plan_suite(load_suite(suite(tmp_path, rows)), seed=5)
    runs = [(run.experiment.name, run.repeat, run.experiment.seed) for run in plan.runs]
    assert runs == [
        ("quickstart", 0, 5),
        ("kill-taskmanager-mid-checkpoint", 0, 5),
        ("kill-taskmanager-mid-checkpoint", 1, 6),
        ("quickstart", 1, 6),
        ("kill-jobmanager", 0, 5),
    ]
    assert [(part.row, part.role) for part in plan.runs[0].parts] == [(0, "claim"), (2, "control")]
    assert len(plan.of_row(2)) == 4
    assert plan.of_row(2)[0].experiment.name == "kill-taskmanager-mid-checkpoint"


def test_rows_are_selected_and_repeats_overridden(tmp_path: Path) -> None:
    rows = "  - {experiment: quickstart}\n  - {experiment: canary, repeats: 7}\n"
    loaded = load_suite(suite(tmp_path, rows, "name: mine\nseed: 9"))
    plan = plan_suite(chosen_rows(loaded, ["canary"]), repeats=2)
    assert [(run.experiment.name, run.experiment.seed) for run in plan.runs] == [
        ("canary", 9),
        ("canary", 10),
    ]
    with pytest.raises(BadInput, match='did you mean "canary"'):
        chosen_rows(loaded, ["canari"])


def test_every_claim_on_spark_has_a_control_or_a_reason_why_not() -> None:
    rows = load_suite("claims").rows
    spark = [row for row in rows if any(name.startswith("spark-") for name in row.names)]
    assert len(spark) >= 6
    assert all(row.source.control is not None and row.source.relations for row in spark)
    without = [row.source for row in rows if row.source.unavailable is not None]
    assert any("micro-batch" in str(source.unavailable) for source in without)
