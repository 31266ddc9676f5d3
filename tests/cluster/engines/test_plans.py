"""The engines' plans for a topology, and the problems that they report. No container is used."""

from __future__ import annotations

import math
from typing import Any

import pytest
import yaml

from streamquake.cluster import jvm_agent
from streamquake.cluster.engines.engine import NodePlan, PortAllocator, engine
from streamquake.cluster.engines.flink.config import job_settings, lost_after_s
from streamquake.cluster.engines.hdfs import engine as hdfs
from streamquake.cluster.engines.kafka import engine as kafka
from streamquake.topologies.model import Link, Topology


def topology(**services: Any) -> Topology:
    return Topology.model_validate({"name": "t", "services": services})


def plans(declared: Topology, service: str, *, manual_jobs: bool = False) -> dict[str, NodePlan]:
    ports = PortAllocator(
        host=lambda node, port: 20_000 + port + node.ordinal, manual_jobs=manual_jobs
    )
    runs = engine(declared.services[service].engine)
    nodes = [n for n in declared.nodes() if n.service == service]
    nodes += runs.extra_nodes(declared, service)
    return {node.name: runs.plan(declared, node, ports) for node in nodes}


def problems(declared: Topology, service: str) -> dict[str, str]:
    found = engine(declared.services[service].engine).problems(declared, service)
    return {".".join(path): message for path, message in found}


def properties(plan: NodePlan) -> dict[str, str]:
    (text,) = plan.files.values()
    return dict(line.split("=", 1) for line in text.splitlines())


def full_topology(**flink: Any) -> Topology:
    return topology(
        kafka={"engine": "kafka", "nodes": {"broker": 1}},
        hdfs={"engine": "hdfs", "nodes": {"namenode": 1, "datanode": 2}},
        flink={"engine": "flink", "nodes": {"jobmanager": 1, "taskmanager": 3}, **flink},
    )


def test_a_broker_advertises_its_published_port_to_the_host() -> None:
    declared = topology(k={"engine": "kafka", "nodes": {"broker": 1}})
    plan = plans(declared, "k")["k/broker-1"]
    settings = properties(plan)
    assert "HOST://127.0.0.1:29097" in settings["advertised.listeners"]
    assert "INPUT://k-broker-1:9093,OUTPUT://k-broker-1:9094" in settings["advertised.listeners"]
    assert plan.publish == (9096,)
    assert kafka.addresses(declared, "k", "output") == "k-broker-1:9094"


def test_three_of_four_brokers_are_controllers_and_topics_have_three_copies() -> None:
    declared = topology(k={"engine": "kafka", "nodes": {"broker": 4}})
    found = [properties(plan) for plan in plans(declared, "k").values()]
    roles = [settings["process.roles"] for settings in found]
    assert roles == ["broker,controller"] * 3 + ["broker"]
    assert {s["controller.quorum.voters"].count("@") for s in found} == {3}
    assert {s["transaction.state.log.replication.factor"] for s in found} == {"3"}
    assert "CONTROLLER://" not in found[3]["listeners"]


def test_settings_of_the_topology_override_defaults_but_not_addresses() -> None:
    broker = {"engine": "kafka", "nodes": {"broker": 1}}
    declared = topology(k={**broker, "config": {"auto.create.topics.enable": True}})
    assert properties(plans(declared, "k")["k/broker-1"])["auto.create.topics.enable"] == "true"
    rejected = topology(k={**broker, "config": {"listeners": "X://:1"}})
    assert "set by the engine" in problems(rejected, "k")["config.listeners"]


def test_hdfs_has_one_replica_per_datanode() -> None:
    plan = plans(full_topology(), "hdfs")["hdfs/datanode-2"]
    site = next(text for path, text in plan.files.items() if path.endswith("hdfs-site.xml"))
    assert "<name>dfs.replication</name><value>2</value>" in site
    assert "<name>dfs.datanode.hostname</name><value>hdfs-datanode-2</value>" in site
    assert hdfs.uri(full_topology(), "hdfs") == "hdfs://hdfs-namenode-1:8020"


def test_flink_gets_a_gateway_unless_one_is_declared() -> None:
    assert "flink/gateway-1" in plans(full_topology(), "flink")
    declared = full_topology(
        nodes={"jobmanager": 1, "taskmanager": 1, "gateway": {"memory_mb": 640}}
    )
    found = plans(declared, "flink")
    assert len(found) == 3
    assert found["flink/gateway-1"].memory_mb == 640


def test_job_options_are_submitted_with_each_job() -> None:
    declared = full_topology(
        config={"execution.checkpointing.interval": "5s", "heartbeat.interval": "2 s"}
    )
    settings = job_settings(declared, "flink", {"execution.checkpointing.timeout": "9s"})
    assert settings["execution.checkpointing.interval"] == "5s"
    assert settings["execution.checkpointing.timeout"] == "9s"
    assert settings["execution.checkpointing.dir"].startswith("hdfs://hdfs-namenode-1:8020/")
    assert "heartbeat.interval" not in settings


def test_a_job_can_disable_the_checkpoints_of_its_service() -> None:
    declared = full_topology(config={"execution.checkpointing.interval": "5s"})
    settings = job_settings(declared, "flink", {"execution.checkpointing.interval": "disabled"})
    assert "execution.checkpointing.interval" not in settings
    for plan in plans(declared, "flink").values():
        (text,) = plan.files.values()
        assert "execution.checkpointing.interval" not in yaml.safe_load(text)


def test_a_taskmanager_advertises_its_host_and_a_fixed_data_port() -> None:
    declared = full_topology(nodes={"jobmanager": 1, "taskmanager": {"count": 2, "slots": 4}})
    (text,) = plans(declared, "flink")["flink/taskmanager-2"].files.values()
    config = yaml.safe_load(text)
    assert config["taskmanager.host"] == "flink-taskmanager-2"
    assert int(config["taskmanager.data.port"]) == engine("flink").ports()["data"]
    assert config["taskmanager.numberOfTaskSlots"] == "4"
    assert config["jobmanager.rpc.address"] == "flink-jobmanager-1"


@pytest.mark.parametrize(
    ("port", "expected"), [("data", "0"), ("task-rpc", "6122"), (6122, "6122"), (6121, "0")]
)
def test_a_taskmanager_has_a_fixed_rpc_port_only_for_a_link(port: str | int, expected: str) -> None:
    declared = full_topology()
    link = Link.model_validate(
        {"from": "flink/jobmanager", "to": "flink/taskmanager", "port": port}
    )
    declared = declared.model_copy(update={"links": {"calls": link}})
    (text,) = plans(declared, "flink")["flink/taskmanager-1"].files.values()
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
def test_invalid_declarations_are_problems(declared: dict[str, Any], path: str, words: str) -> None:
    found = problems(full_topology(**declared), "flink")
    assert words in found[path]


def test_the_shipped_topology_has_no_problems() -> None:
    declared = full_topology(version="1.20", config={"execution.checkpointing.interval": "2s"})
    assert [problems(declared, service) for service in declared.services] == [{}, {}, {}]


def test_images_named_by_the_topology_need_no_recipe_and_no_build() -> None:
    declared = topology(
        k={"engine": "kafka", "image": "mine:1", "version": "7", "nodes": {"broker": 1}}
    )
    assert problems(declared, "k") == {}
    assert engine("kafka").images(declared, "k") == ()
    assert plans(declared, "k")["k/broker-1"].image == "mine:1"


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
    declared = full_topology(nodes=nodes, config=given)

    assert problems(declared, "flink") == {}
    for name, plan in plans(declared, "flink").items():
        config = config_of(plan)
        assert config["env.java.opts.all"] == "-Xss1m"
        if not name.startswith(f"flink/{role}"):
            assert "/opt/flink/conf/streamquake.btm" not in plan.files
            assert config[option] == "-Xlog:gc"
            continue
        assert plan.files["/opt/flink/conf/streamquake.btm"] == RULES
        assert config[option] == (
            "-Xlog:gc -javaagent:/opt/streamquake/byteman.jar=script:"
            "/opt/flink/conf/streamquake.btm,sys:/opt/streamquake/rule-classes.jar,listener:true,address:127.0.0.1,port:9091"
        )


def test_a_node_without_rules_starts_without_the_agent() -> None:
    for plan in plans(full_topology(), "flink").values():
        assert "javaagent" not in "".join(plan.files.values())


def test_a_manually_submitted_job_takes_checkpoints_unless_disabled() -> None:
    interval = "execution.checkpointing.interval"
    for service, expected in ({}, "2 s"), ({interval: "9s"}, "9s"), ({interval: "disabled"}, None):
        declared = full_topology(config=service)
        plan = plans(declared, "flink", manual_jobs=True)["flink/gateway-1"]
        assert config_of(plan).get(interval) == expected
        assert interval not in config_of(plans(declared, "flink")["flink/gateway-1"])


def test_rules_need_an_image_with_the_rule_agent() -> None:
    with_rules = {"rules": RULES}
    kafka_only = topology(k={"engine": "kafka", "nodes": {"broker": with_rules}})
    assert "started without a rule agent" in problems(kafka_only, "k")["nodes.broker.rules"]

    nodes = {"jobmanager": with_rules, "taskmanager": 1}
    foreign = problems(full_topology(image="example/flink:9", nodes=nodes), "flink")
    assert "which the image example/flink:9 does not contain" in foreign["nodes.jobmanager.rules"]

    nodes["jobmanager"] = {**with_rules, "image": "example/jm:9"}
    foreign = problems(full_topology(nodes=nodes), "flink")
    assert "which the image example/jm:9 does not contain" in foreign["nodes.jobmanager.rules"]


def test_the_agent_listens_on_the_port_that_faults_use() -> None:
    assert (
        jvm_agent.agent_option("/s.btm", "/c.jar")
        == f"-javaagent:{jvm_agent.JAR}=script:/s.btm,sys:/c.jar,{jvm_agent.LISTENER}"
    )
    assert f"port:{jvm_agent.PORT}" in jvm_agent.LISTENER


def test_a_release_before_1_19_gets_its_own_file_with_its_own_names_and_units() -> None:
    declared = full_topology(version="1.17.1")
    for plan in plans(declared, "flink").values():
        ((path, text),) = plan.files.items()
        assert path == "/opt/flink/conf/flink-conf.yaml"
        settings = dict(line.split(": ", 1) for line in text.splitlines())
        assert settings["heartbeat.interval"] == "1000"
        assert settings["state.checkpoints.dir"].startswith("hdfs://")
        assert settings["cluster.evenly-spread-out-slots"] == "true"
        assert settings["env.java.default-opts.all"].startswith("--add-exports=java.base/")
        assert "taskmanager.load-balance.mode" not in settings
        assert not any("'" in value for value in settings.values())


def test_connectors_belong_to_an_image_that_is_built() -> None:
    wanted = {"kafka": "3.2.0-1.19"}
    declared = full_topology(version="1.19.1", connectors=wanted)
    assert problems(declared, "flink") == {}
    (built,) = engine("flink").images(declared, "flink")
    assert {plan.image for plan in plans(declared, "flink").values()} == {built.tag}
    assert built.pins["connector.version"] == "3.2.0-1.19"

    foreign = full_topology(image="my/flink", connectors=wanted)
    message = "the image my/flink brings its own connectors; remove the key"
    assert problems(foreign, "flink") == {"connectors": message}

    kafka_only = topology(k={"engine": "kafka", "nodes": {"broker": 1}, "connectors": wanted})
    assert problems(kafka_only, "k") == {
        "connectors": "the kafka image has no connector 'kafka'; known: none"
    }


def test_plugins_are_in_the_image_of_every_node() -> None:
    wanted = ("org.apache.flink:flink-s3-fs-hadoop:2.2.0",)
    declared = full_topology(plugins=wanted)
    assert problems(declared, "flink") == {}
    (built,) = engine("flink").images(declared, "flink")
    assert {plan.image for plan in plans(declared, "flink").values()} == {built.tag}
    assert built.plugins == wanted

    foreign = full_topology(image="my/flink", plugins=wanted)
    message = "the image my/flink brings its own plugins; remove the key"
    assert problems(foreign, "flink") == {"plugins": message}

    kafka_only = topology(k={"engine": "kafka", "nodes": {"broker": 1}, "plugins": wanted})
    assert problems(kafka_only, "k") == {"plugins": "the kafka image takes no plugins; Flink does"}


def test_an_unknown_release_is_a_problem_of_the_version() -> None:
    (message,) = problems(full_topology(version="1.20.9"), "flink").values()
    assert "no flink release '1.20.9'; known of this line: 1.20.5" in message


@pytest.mark.parametrize(
    ("config", "lost_after"),
    [
        ({}, 11),
        ({"heartbeat.timeout": "5 s"}, 6),
        ({"heartbeat.timeout": "500 ms", "heartbeat.interval": "100ms"}, 0.6),
        ({"heartbeat.timeout": "a while"}, math.inf),
    ],
)
def test_a_process_is_lost_after_its_last_heartbeat_is_too_old(
    config: dict[str, str], lost_after: float
) -> None:
    assert lost_after_s(full_topology(config=config), "flink") == pytest.approx(lost_after)
