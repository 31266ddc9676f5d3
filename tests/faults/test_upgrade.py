"""The rolling upgrade: the new container of a node, and the state after an interrupted upgrade."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import ValidationError

from streamquake.cluster.cluster import Cluster, attach_cluster, remove_cluster
from streamquake.cluster.engines.hdfs.engine import FOLDER
from streamquake.cluster.node import Node
from streamquake.cluster.runtime import labels
from streamquake.cluster.runtime.duplicate_containers import MEANWHILE
from streamquake.cluster.runtime.fake_runtime import FakeContainer, FakeRuntime
from streamquake.cluster.runtime.runtime import ContainerError, ContainerStatus
from streamquake.faults.catalogue.rolling_upgrade import RollingUpgrade
from streamquake.faults.injection.injection import evidence_now
from streamquake.faults.injection.intents import IntentLog
from tests.fakes import WIDE, fake_cluster
from tests.fakes.worlds import process
from tests.injecting import FaultInjector

NAMES = ("hdfs/datanode-1", "hdfs/datanode-2")
FIRST, SECOND = NAMES
UPGRADE = RollingUpgrade(image="hdfs:next")


class HarnessKilled(BaseException):
    """The harness process ends here, without cleanup."""


class Testbed(FaultInjector):
    """A fake cluster, its intents, and access to its containers."""

    def __init__(self, folder: Path) -> None:
        log = IntentLog(folder / "intents.jsonl")
        super().__init__(fake_cluster(WIDE), log, limit_s=1, at="all of hdfs/datanode")
        assert isinstance(self.cluster.runtime, FakeRuntime)
        self.runtime = self.cluster.runtime

    def containers(self, name: str) -> list[FakeContainer]:
        return [
            c for c in self.runtime.containers.values() if c.spec.labels.get(labels.NODE) == name
        ]

    def only_container(self, name: str) -> FakeContainer:
        (container,) = self.containers(name)
        node = self.cluster.node(name)
        assert container.id == node.container
        assert container.spec.name == self.cluster.container_name(node.spec.host)
        assert container.state.status == ContainerStatus.RUNNING
        return container

    def next_process(self) -> Cluster:
        """The same cluster, attached from another process."""
        other = attach_cluster(
            run_id=self.cluster.run_id,
            topology=WIDE,
            runtime=self.runtime,
            clock=self.cluster.clock,
        )
        process.install(other)
        return other


@pytest.fixture
def testbed(tmp_path: Path) -> Testbed:
    return Testbed(tmp_path)


@pytest.mark.parametrize("params", [{"image": ""}, {"ready_s": 0}, {"grace_s": -1}])
def test_invalid_parameters_are_rejected(params: dict[str, object]) -> None:
    with pytest.raises(ValidationError, match=r"at least 1 character|greater than 0"):
        RollingUpgrade.model_validate(params)


def test_every_node_gets_the_new_image_and_after_the_heal_its_own(testbed: Testbed) -> None:
    before = [testbed.only_container(name) for name in NAMES]

    intent, injected = testbed.inject_fault(UPGRADE)

    assert injected.done, injected.reason
    after = [testbed.only_container(name) for name in NAMES]
    assert [c.spec.image for c in after] == ["hdfs:next"] * 2
    assert [c.spec.ip for c in after] == [c.spec.ip for c in before]
    assert [dict(c.spec.labels) for c in after] == [dict(c.spec.labels) for c in before]
    assert injected.evidence[FIRST]["image"] == "hdfs:next"
    assert after[0].state.started_ms <= after[1].state.started_ms
    for _ in range(2):
        assert testbed.undo(intent).done
        assert [testbed.only_container(name).spec.image for name in NAMES] == ["none", "none"]


def test_files_on_volumes_survive_an_upgrade(testbed: Testbed) -> None:
    kept, lost = f"{FOLDER}/data/block", "/etc/created-manually"
    before = testbed.only_container(FIRST)
    before.files |= {kept: "bytes", lost: "bytes"}

    _, injected = testbed.inject_fault(RollingUpgrade(), FIRST)

    assert injected.done, injected.reason
    assert testbed.only_container(FIRST).id != before.id
    assert testbed.only_container(FIRST).files[kept] == "bytes"
    assert lost not in testbed.only_container(FIRST).files


def test_settings_reach_the_new_containers_and_are_removed_by_the_heal(testbed: Testbed) -> None:
    intent, injected = testbed.inject_fault(
        RollingUpgrade(config={"dfs.datanode.max.locked.memory": 17})
    )

    assert injected.done, injected.reason
    assert injected.evidence[SECOND]["settings"] == {"dfs.datanode.max.locked.memory": 17}
    assert any(
        "max.locked.memory" in text for text in testbed.only_container(SECOND).files.values()
    )
    assert testbed.undo(intent).done
    assert not any(
        "max.locked.memory" in text for text in testbed.only_container(SECOND).files.values()
    )


def test_reserved_settings_are_rejected_before_a_node_is_stopped(testbed: Testbed) -> None:
    before = testbed.only_container(FIRST).state

    _, injected = testbed.inject_fault(
        RollingUpgrade(config={"dfs.datanode.data.dir": "/elsewhere"})
    )

    assert not injected.done
    assert "hdfs rejects the settings" in injected.reason
    assert testbed.only_container(FIRST).state == before


def test_an_image_that_does_not_start_ends_the_upgrade_and_the_node_is_healed(
    testbed: Testbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = testbed.cluster.container_name("hdfs-datanode-1")
    testbed.runtime.failing_starts[f"{name}{MEANWHILE}"] = ContainerError("exec format error")

    intent, injected = testbed.inject_fault(UPGRADE)

    assert not injected.done
    assert "hdfs/datanode-1 does not start from hdfs:next: exec format error" in injected.reason
    assert testbed.only_container(SECOND).spec.image == "none"
    assert testbed.undo(intent).done
    assert testbed.only_container(FIRST).spec.image == "none"


@pytest.mark.parametrize("call", ["create", "kill", "start_again", "logs", "remove", "rename"])
@pytest.mark.parametrize("after", [False, True])
def test_a_new_process_heals_an_upgrade_that_was_interrupted_at_any_call(
    call: str, after: bool, testbed: Testbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    intent = testbed.intend(UPGRADE, FIRST)
    with monkeypatch.context() as patched:
        _kill_harness_at(testbed.runtime, call, after, patched)
        with pytest.raises(HarnessKilled):
            UPGRADE.inject(testbed.cluster, testbed.cluster.node(FIRST))

    other = testbed.next_process()
    assert len(testbed.containers(FIRST)) >= 1
    FaultInjector(other, testbed.log, limit_s=1).heal(intent)

    (container,) = testbed.containers(FIRST)
    assert (container.spec.image, container.state.status) == ("none", ContainerStatus.RUNNING)
    assert container.spec.name == testbed.cluster.container_name("hdfs-datanode-1")
    assert evidence_now(intent, testbed.cluster)[FIRST].healed
    assert testbed.only_container(FIRST) is container


def _kill_harness_at(
    runtime: FakeRuntime, call: str, after: bool, patched: pytest.MonkeyPatch
) -> None:
    """From this call on the harness does nothing, not even its cleanup."""
    original = getattr(runtime, call)

    def dead(*_: object, **__: object) -> None:
        raise HarnessKilled

    def dies(*args: object, **named: object) -> None:
        if after:
            original(*args, **named)
        for name in ("create", "kill", "start_again", "logs", "remove", "rename"):
            patched.setattr(runtime, name, dead)
        raise HarnessKilled

    patched.setattr(runtime, call, dies)


def test_removing_the_run_removes_both_containers_of_a_node(testbed: Testbed) -> None:
    node = testbed.cluster.node(FIRST)
    _create_second_container(testbed, node)

    assert remove_cluster(testbed.runtime, testbed.cluster.run_id) == []

    assert testbed.containers(FIRST) == []


def test_a_second_container_of_a_node_does_not_count_as_the_node(testbed: Testbed) -> None:
    node = testbed.cluster.node(FIRST)
    intent = testbed.intend(UPGRADE, FIRST)
    _create_second_container(testbed, node)

    assert testbed.next_process().node(FIRST).container == node.container
    assert not evidence_now(intent, testbed.cluster)[FIRST].healed
    assert testbed.undo(intent).done
    assert testbed.only_container(FIRST).id == node.container


def _create_second_container(dataset: Testbed, node: Node) -> str:
    spec = dataset.runtime.containers[node.container].spec
    return dataset.runtime.create(replace(spec, name=f"{spec.name}{MEANWHILE}", image="hdfs:next"))


@pytest.mark.parametrize("fault", [UPGRADE, RollingUpgrade()])
def test_a_node_that_ended_meanwhile_is_healed(fault: RollingUpgrade, testbed: Testbed) -> None:
    intent, injected = testbed.inject_fault(fault)
    assert injected.done, injected.reason
    testbed.runtime.die(testbed.cluster.node(FIRST).container, 1)

    assert testbed.undo(intent).done

    assert [testbed.only_container(name).spec.image for name in NAMES] == ["none", "none"]


def test_a_node_that_was_removed_meanwhile_is_healed(testbed: Testbed) -> None:
    intent, _ = testbed.inject_fault(UPGRADE)
    testbed.runtime.remove(testbed.cluster.node(FIRST).container)

    assert testbed.undo(intent).done

    assert testbed.containers(FIRST) == []
    assert testbed.only_container(SECOND).spec.image == "none"


def test_nodes_are_healed_one_after_the_other(
    testbed: Testbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    intent, _ = testbed.inject_fault(UPGRADE)
    down: list[int] = []
    kill = testbed.runtime.kill

    def counts(container: str, signal: str = "KILL") -> object:
        bracket = kill(container, signal)
        states = [testbed.cluster.state(testbed.cluster.node(name)).status for name in NAMES]
        down.append(sum(status != ContainerStatus.RUNNING for status in states))
        return bracket

    monkeypatch.setattr(testbed.runtime, "kill", counts)

    assert testbed.undo(intent).done

    assert down == [1, 1]


def test_the_log_of_the_replaced_container_is_kept(testbed: Testbed, tmp_path: Path) -> None:
    testbed.runtime.write_log(testbed.cluster.node(FIRST).container, "the old version")
    testbed.inject_fault(UPGRADE)
    testbed.runtime.write_log(testbed.cluster.node(FIRST).container, "the new version")

    testbed.cluster.save_logs(tmp_path)

    saved = (tmp_path / "hdfs-datanode-1" / "log.txt").read_text(encoding="utf-8")
    assert saved == "the old version\nthe new version\n"
