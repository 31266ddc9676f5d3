"""`up`, `status`, `inject`, `heal`, `logs`, `down`: experiments by hand on a cluster that stays."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path

import click

from streamquake.cluster.clock import SystemClock
from streamquake.cluster.docker.runtime import DockerRuntime
from streamquake.harness.cli.guard import HELD, UNDECIDED
from streamquake.harness.cli.options import json_option, out_option, run_option
from streamquake.harness.cli.status import print_status, status_document
from streamquake.harness.images import ensure_images
from streamquake.harness.kept import Kept, attach, remove, start_kept
from streamquake.harness.kept_faults import heal_all, strike_now
from streamquake.harness.loader import topology_for_use
from streamquake.topologies.problems import BadInput, Problem, did_you_mean

EFFECT_S = 10.0
"""How long an effect, or its end, is waited for; the default of experiments too."""


@click.command("up")
@click.argument("topology")
@click.option("--limit", "limit_s", default=240.0, show_default=True, help="Seconds until ready.")
@out_option
def up_command(topology: str, limit_s: float, out: Path) -> int:
    """Start TOPOLOGY (a shipped one by name or any by path) and leave it up until `down`."""
    loaded = topology_for_use(topology)
    clock = SystemClock()
    runtime = DockerRuntime(clock)
    runtime.check()
    ensure_images(loaded, runtime.images(), click.echo)
    kept = start_kept(
        loaded, out=out, runtime=runtime, clock=clock, limit_s=limit_s, say=click.echo
    )
    print_status(kept)
    role = loaded.roles()[-1]
    click.echo(f"try   streamquake inject pause '{kept.cluster.of_role(role)[0].name}'")
    click.echo("then  streamquake status, heal, logs NODE; at the end  streamquake down")
    return HELD


@click.command("status")
@run_option
@json_option
def status_command(run_id: str | None, as_json: bool) -> int:
    """Show the nodes, their ports, what is not ready, and the open disturbances."""
    kept = _attach(run_id)
    if as_json:
        click.echo(json.dumps(status_document(kept), indent=2))
    else:
        print_status(kept)
    return HELD


@click.command("inject")
@click.argument("fault")
@click.argument("target")
@click.argument("parameters", nargs=-1, metavar="[NAME=VALUE]...")
@click.option("--seed", type=int, help="Chooses among nodes as a run with this seed would.")
@run_option
def inject_command(
    fault: str, target: str, parameters: Sequence[str], seed: int | None, run_id: str | None
) -> int:
    """Inject FAULT on TARGET, wait until it is seen to bite, and print the evidence.

    TARGET is a node, "one of ROLE", "all of ROLE" or "link NAME". A fault that is not seen to bite
    is undone, and the exit status is 3.
    """
    kept = _attach(run_id)
    rng = random.Random(seed)
    struck = strike_now(kept, fault, target, parameters, rng=rng, limit_s=EFFECT_S)
    names = ", ".join(struck.names)
    if not struck.struck.done:
        click.echo(f"{fault} on {names} was not seen to bite: {struck.struck.reason}", err=True)
        click.echo("it was undone; see `streamquake status`", err=True)
        return UNDECIDED
    click.echo(f"{fault} is in effect on {names}")
    click.echo(json.dumps(struck.struck.evidence, indent=2, default=str))
    click.echo("undo it with  streamquake heal")
    return HELD


@click.command("heal")
@run_option
def heal_command(run_id: str | None) -> int:
    """Undo every open disturbance, newest first, and see each gone."""
    kept = _attach(run_id)
    status = HELD
    healed = heal_all(kept, limit_s=EFFECT_S)
    for intent, struck in healed:
        what = f"{intent.fault} on {', '.join(intent.names)}"
        if struck.done:
            click.echo(f"{what}: healed")
        else:
            status = UNDECIDED
            click.echo(f"{what}: not seen to be gone: {struck.reason}", err=True)
    if not healed:
        click.echo("no disturbance is open")
    return status


@click.command("logs")
@click.argument("node")
@click.option("--tail", type=click.IntRange(min=1), help="Only the last lines.")
@run_option
def logs_command(node: str, tail: int | None, run_id: str | None) -> int:
    """Print the log of NODE, such as flink/taskmanager-2."""
    cluster = _attach(run_id).cluster
    if node not in cluster.nodes:
        said = f'no node is called "{node}"{did_you_mean(node, cluster.nodes)}'
        raise BadInput([Problem(file=f"run {cluster.run_id}", message=said)])
    click.echo(cluster.runtime.logs(cluster.node(node).container, tail=tail), nl=False)
    return HELD


@click.command("down")
@run_option
def down_command(run_id: str | None) -> int:
    """Save the logs of the cluster that is up, and remove it."""
    kept = _attach(run_id)
    failures = remove(kept)
    for failure in failures:
        click.echo(failure, err=True)
    click.echo(f"{kept.cluster.run_id} is down; logs: {kept.folder.logs}")
    return UNDECIDED if failures else HELD


def _attach(run_id: str | None) -> Kept:
    clock = SystemClock()
    runtime = DockerRuntime(clock)
    runtime.check()
    return attach(runtime, clock, run_id)
