"""What the engines plan for a topology, and what they refuse in one. No container is asked."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from streamquake.cluster import jvm_agent
from streamquake.cluster.engines.engine import NodePlan, PortAllocator, engine
from streamquake.cluster.engines.flink.config import job_settings
from streamquake.cluster.engines.hdfs import engine as hdfs
from streamquake.cluster.engines.kafka import engine as kafka
from streamquake.topologies.model import Link, Topology


def topology(**services: Any) -> Topology:
    return Topology.model_validate({"name": "t", "services": services})


def plans(made: Topology, service: str, *, manual_jobs: bool = False) -> dict[str, NodePlan]:
    ports = PortAllocator(
        host=lambda node, port: 20_000 + port + node.ordinal, manual_jobs=manual_jobs
    )
    runs = engine(made.services[service].engine)
    nodes = [n for n in made.nodes() if n.service == service]
    nodes += runs.extra_nodes(made, service)
    return {node.name: runs.plan(made, node, ports) for node in nodes}


def problems(made: Topology, service: str) -> dict[str, str]:
    found = engine(made.services[service].engine).problems(made, service)
    return {".".join(path): message for path, message in found}


def properties(plan: NodePlan) -> dict[str, str]:
    (text,) = plan.files.values()
    return dict(line.split("=", 1) for line in text.splitlines())


def whole(**flink: Any) -> Topology:
    return topology(
        kafka={"engine": "kafka", "nodes": {"broker": 1}},
        hdfs={"engine": "hdfs", "nodes": {"namenode": 1, "datanode": 2}},
        flink={"engine": "flink", "nodes": {"jobmanager": 1, "taskmanager": 3}, **flink},
    )


def test_a_broker_is_reached_from_the_host_by_its_published_port() -> None:
    made = topology(k={"engine": "kafka", "nodes": {"broker": 1}})
    plan = plans(made, "k")["k/broker-1"]
    settings = properties(plan)
    assert "HOST://127.0.0.1:29097" in settings["advertised.listeners"]
    assert "INPUT://k-broker-1:9093,OUTPUT://k-broker-1:9094" in settings["advertised.listeners"]
    assert plan.publish == (9096,)
    assert kafka.addresses(made, "k", "output") == "k-broker-1:9094"


def test_three_of_four_brokers_are_controllers_and_topics_have_three_copies() -> None:
    made = topology(k={"engine": "kafka", "nodes": {"broker": 4}})
    found = [properties(plan) for plan in plans(made, "k").values()]
    roles = [settings["process.roles"] for settings in found]
    assert roles == ["broker,controller"] * 3 + ["broker"]
    assert {s["controller.quorum.voters"].count("@") for s in found} == {3}
    assert {s["transaction.state.log.replication.factor"] for s in found} == {"3"}
    assert "CONTROLLER://" not in found[3]["listeners"]


def test_a_users_settings_win_but_not_over_the_addresses() -> None:
    broker = {"engine": "kafka", "nodes": {"broker": 1}}
    made = topology(k={**broker, "config": {"auto.create.topics.enable": True}})
    assert properties(plans(made, "k")["k/broker-1"])["auto.create.topics.enable"] == "true"
    rejected = topology(k={**broker, "config": {"listeners": "X://:1"}})
    assert "set by the engine" in problems(rejected, "k")["config.listeners"]


def test_hdfs_keeps_as_many_copies_as_it_has_datanodes() -> None:
    plan = plans(whole(), "hdfs")["hdfs/datanode-2"]
    site = next(text for path, text in plan.files.items() if path.endswith("hdfs-site.xml"))
    assert "<name>dfs.replication</name><value>2</value>" in site
    assert "<name>dfs.datanode.hostname</name><value>hdfs-datanode-2</value>" in site
    assert hdfs.uri(whole(), "hdfs") == "hdfs://hdfs-namenode-1:8020"


def test_flink_gets_a_gateway_unless_one_is_declared() -> None:
    assert "flink/gateway-1" in plans(whole(), "flink")
    made = whole(nodes={"jobmanager": 1, "taskmanager": 1, "gateway": {"memory_mb": 640}})
    found = plans(made, "flink")
    assert len(found) == 3
    assert found["flink/gateway-1"].memory_mb == 640


def test_what_concerns_jobs_travels_with_each_job() -> None:
    made = whole(config={"execution.checkpointing.interval": "5s", "heartbeat.interval": "2 s"})
    settings = job_settings(made, "flink", {"execution.checkpointing.timeout": "9s"})
    assert settings["execution.checkpointing.interval"] == "5s"
    assert settings["execution.checkpointing.timeout"] == "9s"
    assert settings["execution.checkpointing.dir"].startswith("hdfs://hdfs-namenode-1:8020/")
    assert "heartbeat.interval" not in settings


def test_a_job_can_switch_checkpoints_off_although_the_service_has_them_on() -> None:
    made = whole(config={"execution.checkpointing.interval": "5s"})
    settings = job_settings(made, "flink", {"execution.checkpointing.interval": "disabled"})
    assert "execution.checkpointing.interval" not in settings
    for plan in plans(made, "flink").values():
        (text,) = plan.files.values()
        assert "execution.checkpointing.interval" not in yaml.safe_load(text)


def test_a_taskmanager_advertises_its_host_and_a_fixed_data_port() -> None:
    made = whole(nodes={"jobmanager": 1, "taskmanager": {"count": 2, "slots": 4}})
    (text,) = plans(made, "flink")["flink/taskmanager-2"].files.values()
    config = yaml.safe_load(text)
    assert config["taskmanager.host"] == "flink-taskmanager-2"
    assert int(config["taskmanager.data.port"]) == engine("flink").ports()["data"]
    assert config["taskmanager.numberOfTaskSlots"] == "4"
    assert config["jobmanager.rpc.address"] == "flink-jobmanager-1"


@pytest.mark.parametrize(
    ("port", "expected"), [("data", "0"), ("task-rpc", "6122"), (6122, "6122"), (6121, "0")]
)
def test_a_taskmanager_takes_calls_on_a_new_port_unless_a_link_must_know_it(
    port: str | int, expected: str
) -> None:
    made = whole()
    calls = Link.model_validate(
        {"from": "flink/jobmanager", "to": "flink/taskmanager", "port": port}
    )
    made = made.model_copy(update={"links": {"calls": calls}})
    (text,) = plans(made, "flink")["flink/taskmanager-1"].files.values()
    assert yaml.safe_load(text)["taskmanager.rpc.port"] == expected


@pytest.mark.parametrize(
    ("declared", "path", "words"),
    [
        ({"version": "9.9"}, "version", "9.9"),
        ({"nodes": {"jobmanager": 1, "taskmanger": 1}}, "nodes.taskmanger", '"taskmanager"?'),
        ({"nodes": {"jobmanager": 1}}, "nodes", "taskmanager"),
        ({"nodes": {"jobmanager": 2, "taskmanager": 1}}, "nodes.jobmanager", "expected one"),
        ({"config": {"rest.port": 1}}, "config.rest.port", "set by the engine"),
        ({"config": {"heartbeat.intervall": 1}}, "config.heartbeat.intervall", "did you mean"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_starts(
    declared: dict[str, Any], path: str, words: str
) -> None:
    found = problems(whole(**declared), "flink")
    assert words in found[path]


def test_the_shipped_topology_has_no_problems() -> None:
    made = whole(version="1.20", config={"execution.checkpointing.interval": "2s"})
    assert [problems(made, service) for service in made.services] == [{}, {}, {}]


def test_foreign_images_need_no_recipe_and_no_build() -> None:
    made = topology(
        k={"engine": "kafka", "image": "mine:1", "version": "7", "nodes": {"broker": 1}}
    )
    assert problems(made, "k") == {}
    assert engine("kafka").images(made, "k") == ()
    assert plans(made, "k")["k/broker-1"].image == "mine:1"


RULES = "RULE r\nCLASS a.B\nMETHOD c\nIF TRUE\nDO RETURN\nENDRULE\n"


def config_of(plan: NodePlan) -> dict[str, str]:
    found: dict[str, str] = yaml.safe_load(plan.files["/opt/flink/conf/config.yaml"])
    return found


@pytest.mark.parametrize(
    ("role", "key"),
    [("jobmanager", "jobmanager"), ("taskmanager", "taskmanager"), ("gateway", "sql-gateway")],
)
def test_a_node_with_rules_starts_with_the_agent_that_applies_them(role: str, key: str) -> None:
    nodes: dict[str, Any] = {"jobmanager": {}, "taskmanager": {}, "gateway": {}}
    nodes[role] = {"rules": RULES}
    option = f"env.java.opts.{key}"
    given = {option: "-Xlog:gc", "env.java.opts.all": "-Xss1m"}
    made = whole(nodes=nodes, config=given)

    assert problems(made, "flink") == {}
    for name, plan in plans(made, "flink").items():
        config = config_of(plan)
        assert config["env.java.opts.all"] == "-Xss1m"
        if not name.startswith(f"flink/{role}"):
            assert "/opt/flink/conf/streamquake.btm" not in plan.files
            assert config[option] == "-Xlog:gc"
            continue
        assert plan.files["/opt/flink/conf/streamquake.btm"] == RULES
        assert config[option] == (
            "-Xlog:gc -javaagent:/opt/streamquake/byteman.jar=script:"
            "/opt/flink/conf/streamquake.btm,listener:true,address:127.0.0.1,port:9091"
        )


def test_a_node_without_rules_starts_without_the_agent() -> None:
    for plan in plans(whole(), "flink").values():
        assert "javaagent" not in "".join(plan.files.values())


def test_a_job_submitted_by_hand_takes_checkpoints_unless_the_service_has_none() -> None:
    interval = "execution.checkpointing.interval"
    for service, expected in ({}, "2 s"), ({interval: "9s"}, "9s"), ({interval: "disabled"}, None):
        made = whole(config=service)
        manual_jobs = plans(made, "flink", manual_jobs=True)["flink/gateway-1"]
        assert config_of(manual_jobs).get(interval) == expected
        assert interval not in config_of(plans(made, "flink")["flink/gateway-1"])


def test_rules_are_refused_where_no_agent_would_apply_them() -> None:
    with_rules = {"rules": RULES}
    kafka_only = topology(k={"engine": "kafka", "nodes": {"broker": with_rules}})
    assert "started without a rule agent" in problems(kafka_only, "k")["nodes.broker.rules"]

    nodes = {"jobmanager": with_rules, "taskmanager": 1}
    foreign = problems(whole(image="example/flink:9", nodes=nodes), "flink")
    assert "which the image example/flink:9 does not contain" in foreign["nodes.jobmanager.rules"]

    nodes["jobmanager"] = {**with_rules, "image": "example/jm:9"}
    foreign = problems(whole(nodes=nodes), "flink")
    assert "which the image example/jm:9 does not contain" in foreign["nodes.jobmanager.rules"]


def test_the_agent_listens_where_faults_look_for_it() -> None:
    assert (
        jvm_agent.agent_option("/s.btm")
        == f"-javaagent:{jvm_agent.JAR}=script:/s.btm,{jvm_agent.LISTENER}"
    )
    assert f"port:{jvm_agent.PORT}" in jvm_agent.LISTENER
