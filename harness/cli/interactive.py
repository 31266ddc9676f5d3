"""`up`, `status`, `inject`, `heal`, `logs`, `down`: manual experiments on a running cluster."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from pathlib import Path

import click

from streamquake.cluster.runtime.clock import SystemClock
from streamquake.cluster.runtime.docker.runtime import DockerRuntime
from streamquake.faults.injection.injection import InjectionResult
from streamquake.harness.cli.completion import complete_fault, complete_parameter, complete_topology
from streamquake.harness.cli.guard import HELD, no_verdict
from streamquake.harness.cli.options import json_option, out_option, run_option
from streamquake.harness.cli.output import echo
from streamquake.harness.cli.status import print_status, status_document
from streamquake.harness.experiment.loader import topology_for_use
from streamquake.harness.interactive.injection import heal_faults, hold, inject_now
from streamquake.harness.interactive.session import ClusterSession, attach, remove, start_session
from streamquake.harness.interrupts import interruptible
from streamquake.harness.run.image_preparation import ensure_images
from streamquake.topologies.errors import ErrorKind, common_cause
from streamquake.topologies.problems import bad_input, did_you_mean

EFFECT_S = 10.0
"""How long commands wait for an effect or for its heal, in seconds; as the default of
experiments."""
UNITS = {"ms": 1e-3, "s": 1.0, "": 1.0, "m": 60.0, "h": 3600.0}


@click.command("up")
@click.argument("topology", shell_complete=complete_topology)
@click.option("--limit", "limit_s", default=240.0, show_default=True, help="Seconds until ready.")
@out_option
def up_command(topology: str, limit_s: float, out: Path) -> int:
    """Start TOPOLOGY (a shipped one by name or any by path) and leave it up until `down`."""
    loaded = topology_for_use(topology)
    clock = SystemClock()
    runtime = DockerRuntime(clock)
    runtime.check()
    ensure_images(loaded, runtime.images(), echo)
    session = start_session(
        loaded, out=out, runtime=runtime, clock=clock, limit_s=limit_s, show_message=echo
    )
    print_status(session)
    role = loaded.roles()[-1]
    echo(f"try   streamquake inject pause '{session.cluster.of_role(role)[0].name}'")
    echo("then  streamquake status, heal, logs NODE; at the end  streamquake down")
    return HELD


@click.command("status")
@run_option
@json_option
def status_command(run_id: str | None, as_json: bool) -> int:
    """Show the nodes, their ports, what is not ready, and the open faults."""
    session = _attach(run_id)
    if as_json:
        echo(json.dumps(status_document(session), indent=2))
    else:
        print_status(session)
    return HELD


def _seconds(context: click.Context, option: click.Parameter, text: str | None) -> float | None:
    """A time such as 30s, 1.5m or 30 (seconds)."""
    if text is None:
        return None
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h|)", text.strip())
    seconds = float(found[1]) * UNITS[found[2]] if found else 0.0
    if seconds <= 0:
        raise click.BadParameter(f'expected a time above 0 such as 30s or 2m, got "{text}"')
    return seconds


@click.command("inject")
@click.argument("fault", shell_complete=complete_fault)
@click.argument("target")
@click.argument(
    "parameters", nargs=-1, metavar="[NAME=VALUE]...", shell_complete=complete_parameter
)
@click.option(
    "--for", "for_s", metavar="TIME", callback=_seconds, help="Wait for TIME (30s, 2m), then heal."
)
@click.option("--seed", type=int, help="Seed of the choice among nodes.")
@run_option
def inject_command(
    fault: str,
    target: str,
    parameters: Sequence[str],
    for_s: float | None,
    seed: int | None,
    run_id: str | None,
) -> int:
    """Inject FAULT on TARGET, wait until its effect is verified, and print the evidence.

    TARGET is a node, "one of ROLE", "all of ROLE", "all but NODE", "the DUTY", "link NAME",
    "between NODES and NODES" or "from NODES to NODES". A fault whose effect is not
    verified is healed, and the exit status is 3. With --for the command waits, then heals; Ctrl-C
    heals at once.
    """
    session = _attach(run_id)
    rng = random.Random(seed)
    with interruptible(echo):
        injection = inject_now(session, fault, target, parameters, rng=rng, limit_s=EFFECT_S)
        what = f"{fault} on {', '.join(injection.intent.names)}"
        if not injection.result.done:
            return no_verdict(
                injection.result.cause,
                f"{what}: effect not verified: {injection.result.reason}",
                "it was healed; see `streamquake status`",
            )
        echo(f"{fault} is in effect on {', '.join(injection.intent.names)}")
        echo(json.dumps(injection.result.evidence, indent=2, default=str))
        if for_s is None:
            echo(f"heal it with  streamquake heal {injection.intent.id}")
            return HELD
        echo(f"waiting for {for_s:g} s, then it is healed; Ctrl-C heals it now")
        healed = hold(session, injection.intent, seconds=for_s, limit_s=EFFECT_S)
    if healed is None:
        echo(f"{what}: healed by another process")
        return HELD
    return _status_of_heals([(what, healed)])


@click.command("heal")
@click.argument("which", nargs=-1, metavar="[FAULT|ID]...", shell_complete=complete_fault)
@run_option
def heal_command(which: Sequence[str], run_id: str | None) -> int:
    """Heal the open faults, newest first, and verify each removal: all, or those named by FAULT or
    by the ID that `status` shows."""
    session = _attach(run_id)
    healed = heal_faults(session, which, limit_s=EFFECT_S)
    if not healed:
        echo("no fault is open")
    return _status_of_heals(
        [(f"{intent.fault} on {', '.join(intent.names)}", result) for intent, result in healed]
    )


def _status_of_heals(heals: Sequence[tuple[str, InjectionResult]]) -> int:
    """Print the result of each heal; return the exit status of all."""
    failed = []
    for what, healed in heals:
        if healed.done:
            echo(f"{what}: healed")
        else:
            echo(f"{what}: removal not verified: {healed.reason}", err=True)
            failed.append(healed.cause)
    return no_verdict(common_cause(failed)) if failed else HELD


@click.command("logs")
@click.argument("node")
@click.option("--tail", type=click.IntRange(min=1), help="Only the last lines.")
@run_option
def logs_command(node: str, tail: int | None, run_id: str | None) -> int:
    """Print the log of NODE, such as flink/taskmanager-2."""
    cluster = _attach(run_id).cluster
    if node not in cluster.nodes:
        message = f'no node is called "{node}"{did_you_mean(node, cluster.nodes)}'
        raise bad_input(f"run {cluster.run_id}", message)
    echo(cluster.runtime.logs(cluster.node(node).container, tail=tail), nl=False)
    return HELD


@click.command("down")
@run_option
def down_command(run_id: str | None) -> int:
    """Save the logs of the cluster that is up, and remove it."""
    session = _attach(run_id)
    failures = remove(session)
    echo(f"{session.cluster.run_id} is down; logs: {session.folder.logs}")
    return no_verdict(ErrorKind.CLUSTER_FAILED, *failures) if failures else HELD


def _attach(run_id: str | None) -> ClusterSession:
    clock = SystemClock()
    runtime = DockerRuntime(clock)
    runtime.check()
    return attach(runtime, clock, run_id)
