"""Data faults, with a load that a fake broker acknowledges."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from streamquake.cluster.cluster import Cluster
from streamquake.faults.fault import faults
from streamquake.faults.injection.injection import InjectionResult
from streamquake.faults.injection.intents import IntentLog
from streamquake.faults.injection.verification import verify_again
from streamquake.faults.mechanisms.data import DataFault
from streamquake.faults.mechanisms.key_shares import Skew
from streamquake.faults.mechanisms.workload_change import WorkloadChange
from streamquake.harness.workloads.numbered import Numbered
from tests.fakes import fake_cluster
from tests.fakes.worlds.workload import FakeLoad
from tests.injecting import FaultInjector

CASES: dict[str, dict[str, Any]] = {
    name: dict(kind.example) for name, kind in faults.items() if issubclass(kind, DataFault)
}


class Testbed:
    """A fake cluster with a load of its own."""

    def __init__(self, folder: Path, **workload: Any) -> None:
        self.cluster: Cluster = fake_cluster()
        fields: dict[str, Any] = {"records": 100_000, "rate_per_s": 500, "keys": 16} | workload
        self.load = FakeLoad(self.cluster.clock, Numbered(**fields))
        self.cluster.run.steering = self.load
        self._injector = FaultInjector(self.cluster, IntentLog(folder / "intents.jsonl"), limit_s=2)

    def inject_fault(self, name: str, **params: Any) -> InjectionResult:
        _, injected = self._injector.inject_fault(faults[name](**params), "the workload")
        return injected

    def heal(self) -> InjectionResult:
        (intent,) = self._injector.log.open_intents()
        return self._injector.undo(intent)

    def evidence(self, injected: InjectionResult) -> Any:
        assert injected.done, injected.reason
        return injected.evidence["the workload"]


@pytest.fixture
def testbed(tmp_path: Path) -> Testbed:
    return Testbed(tmp_path)


@pytest.mark.parametrize("name", CASES)
def test_every_data_fault_changes_the_load(name: str) -> None:
    fault = faults[name](**CASES[name])

    assert isinstance(fault, DataFault)
    assert fault.change != WorkloadChange()


def test_skew_is_verified_by_the_keys_of_acknowledged_records(testbed: Testbed) -> None:
    evidence = testbed.evidence(testbed.inject_fault("skew", hot_share=0.6))

    assert evidence["before"]["hottest_share"] < 0.1
    assert 0.4 < evidence["hottest_share"] < 0.8
    assert max(evidence["hottest"], key=evidence["hottest"].get) == "k-00000"

    testbed.heal()
    assert testbed.load.sent_under("skew")["hottest_share"] < 0.2


def test_a_zipf_skew_is_verified_by_the_share_of_the_first_key(testbed: Testbed) -> None:
    assert testbed.evidence(testbed.inject_fault("skew", zipf=1.5))["hottest_share"] > 0.25


def test_a_skew_of_an_equally_skewed_load_is_not_in_effect(tmp_path: Path) -> None:
    dataset = Testbed(tmp_path, skew=Skew(hot_share=0.7))

    assert not dataset.inject_fault("skew", hot_share=0.6).done


def test_a_surge_is_verified_by_the_rate_of_acknowledgements(testbed: Testbed) -> None:
    evidence = testbed.evidence(testbed.inject_fault("surge", factor=4))

    assert evidence["before"]["records_per_s"] == pytest.approx(500, rel=0.05)
    assert evidence["records_per_s"] == pytest.approx(2000, rel=0.05)

    testbed.heal()
    testbed.cluster.clock.sleep(1)
    assert testbed.load.sent_under("surge")["records_per_s"] == pytest.approx(500, rel=0.05)


def test_a_surge_beyond_the_brokers_rate_is_not_in_effect(testbed: Testbed) -> None:
    testbed.load.accepts_per_s = 600

    injected = testbed.inject_fault("surge", factor=4)

    assert not injected.done
    assert "surge on the workload in effect" in injected.reason


def test_large_records_are_verified_by_their_size(testbed: Testbed) -> None:
    evidence = testbed.evidence(
        testbed.inject_fault("large_records", payload_bytes=50_000, share=0.05)
    )

    assert evidence["before"]["largest_bytes"] < 300
    assert 50_000 < evidence["largest_bytes"] < 50_300


def test_late_events_are_verified_by_their_event_times(testbed: Testbed) -> None:
    evidence = testbed.evidence(
        testbed.inject_fault("late_events", late_ms=3000, share=0.3, out_of_order_ms=400)
    )

    assert evidence["before"] == {"moved_back": 0, "furthest_back_ms": 0}
    assert 3000 <= evidence["furthest_back_ms"] <= 3400


def test_exactly_one_poison_record_is_sent(testbed: Testbed) -> None:
    assert testbed.evidence(testbed.inject_fault("poison"))["unreadable"] == 1
    testbed.cluster.clock.sleep(2)
    assert testbed.load.sent_under("poison")["unreadable"] == 1


def test_a_fan_out_is_verified_by_the_copies_of_a_record(testbed: Testbed) -> None:
    evidence = testbed.evidence(testbed.inject_fault("fan_out", copies=40, share=0.1))

    assert evidence["before"] == {"exploded": 0, "most_copies": 1}
    assert evidence["most_copies"] == 40


@pytest.mark.parametrize("name", CASES)
def test_an_unchanged_load_is_not_in_effect(testbed: Testbed, name: str) -> None:
    testbed.load.ignores_changes = True

    assert not testbed.inject_fault(name, **CASES[name]).done
    assert testbed.heal().done


@pytest.mark.parametrize("name", CASES)
def test_a_finished_load_cannot_be_disturbed_and_counts_as_healed(
    tmp_path: Path, name: str
) -> None:
    dataset = Testbed(tmp_path, records=100)

    injected = dataset.inject_fault(name, **CASES[name])

    assert not injected.done
    assert "had sent all of its records" in injected.reason
    assert dataset.heal().done


def test_a_load_that_finishes_during_a_fault_is_healed(tmp_path: Path) -> None:
    dataset = Testbed(tmp_path, records=1000)
    assert dataset.inject_fault("skew", hot_share=0.6).done

    dataset.cluster.clock.sleep(10)

    assert not dataset.load.sent_under("skew")["active"]
    (intent,) = dataset._injector.log.open_intents()
    assert (
        verify_again(intent, dataset.cluster).ended_on == ()
    )  # the load has finished, which does not prove a heal
    assert dataset.heal().done


def test_a_removed_load_is_healed(testbed: Testbed) -> None:
    assert testbed.inject_fault("skew", hot_share=0.6).done

    testbed.cluster.run.steering = None

    assert testbed.heal().reason == "target removed"


def test_data_faults_overlap_and_are_healed_separately(testbed: Testbed) -> None:
    for name in ("skew", "large_records", "surge"):
        assert testbed.inject_fault(name, **CASES[name]).done, name

    testbed.load.settle("large_records")
    testbed.cluster.clock.sleep(1)

    assert testbed.load.sent_under("skew")["hottest_share"] > 0.4
    assert testbed.load.sent_under("surge")["records_per_s"] > 1200
    assert testbed.load.sent_under("large_records")["largest_bytes"] < 300


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("skew", {}, "needs `hot_share: SHARE` or `zipf: EXPONENT`"),
        ("skew", {"hot_share": 0.5, "zipf": 1.0}, "and not both"),
        ("skew", {"hot_share": 1.0}, "less than 1"),
        ("surge", {"factor": 1}, "greater than 1"),
        ("large_records", {"payload_bytes": 2_000_000}, "less than or equal to 980000"),
        ("late_events", {}, "needs `late_ms`, `out_of_order_ms`, or both"),
        ("poison", {"records": 0}, "greater than or equal to 1"),
        ("fan_out", {"copies": 1}, "greater than or equal to 2"),
    ],
)
def test_invalid_parameters_are_rejected(name: str, params: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        faults[name](**params)


def test_a_load_rejects_an_unknown_fault(testbed: Testbed) -> None:
    with pytest.raises(ValueError, match='cannot be steered into "rain"; known: fan_out, large'):
        testbed.load.steer("rain", {})
