"""Packet rules of our own in the network namespaces of containers, and connection attempts there.

Every injection has a chain of its own, named by a mark; its rules say in a comment what they are
for. Laying it is one transaction of the kernel, so that all of it bites at once or nothing does;
lifting it removes this chain and the jumps to it, and nobody else's rules. The rules go with the
namespace when the container ends.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from streamquake.cluster.runtime import ContainerError, ContainerRuntime, ExecResult, Status

How = Literal["silent", "reset"]
"""What happens to a packet that is stopped: dropped, so that nobody is told; or refused, with a
TCP reset or ICMP's "port unreachable", so that whoever sent it knows at once."""

MARK = "STREAMQUAKE-"
PROBE_LIMIT_S = 0.3
"""How long a connection attempt waits that is to stay without an answer; one takes a millisecond
in one network, and a shell's start before it."""
UNDISTURBED_S = 3.0
"""How long one waits that is to be answered, so that a busy machine is not taken for a cut."""
TIMED_OUT = "timed out"

LAY = """exec iptables-restore --noflush -w <<END
$1
END
"""

LIFT = r"""
saved=$(iptables-save -t filter) || exit 3
printf '%s\n' "$saved" | grep -q "^:$1 " || exit 0
{
  echo '*filter'
  printf '%s\n' "$saved" | sed -n "s/^-A \(INPUT\|OUTPUT\) -j $1\$/-D \1 -j $1/p"
  printf '%s\n' "-F $1" "-X $1" COMMIT
} | iptables-restore --noflush -w
"""

LOOK = r"""
mark=$1 limit=$2; shift 2
for at; do
  {
    said=$(LC_ALL=C timeout "$limit" bash -c "exec 3<>/dev/tcp/${at/:/\/}" 2>&1)
    echo "probe $at $?" $said
  } &
done
wait
saved=$(iptables-save -c -t filter) || exit 3
printf '%s\n' "$saved" | grep -F -e "$mark" || true
"""
"""Try some addresses, all at once, and then show our rules with what they have counted."""

COUNTED = re.compile(r"^\[(\d+):\d+\] -A (\S+) .*-j (DROP|REJECT|RETURN)\b", re.M)
PROBED = re.compile(r"^probe (\S+) (\d+) ?(.*)$", re.M)


@dataclass(frozen=True, kw_only=True)
class Block:
    """Packets that come in from an address, or go out to it, and what a rule does with them."""

    way: Literal["in", "out"]
    peer: str
    """Who stands at the address, for the reader of the rule."""
    address: str
    port: int | None = None
    """The TCP port at the near or far end that makes it one link's; None for everything."""
    port_is: Literal["far", "near"] = "far"
    passes: bool = False
    """Counted but not stopped, to show that this way is still open."""
    opening: bool = False
    """Only packets that open a connection."""


@dataclass(frozen=True, kw_only=True)
class Look:
    """What one look into a namespace has shown."""

    answers: Mapping[str, str]
    """`address:port` tried from there -> `connected`, `refused`, `timed out`, or other words."""
    laid: bool
    """Whether the chain is there."""
    stopped: int
    passed: int
    """Packets that its rules have stopped, and that its counting rules have let pass."""
    others: bool
    """Whether the chain of another of our injections is there."""


def chain_named(*words: str) -> str:
    """The chain of an injection: the same for the same words, in every process."""
    return MARK + hashlib.sha256(" ".join(words).encode()).hexdigest()[:12]


def lay(
    runtime: ContainerRuntime, container: str, chain: str, blocks: Sequence[Block], how: How
) -> None:
    """Lay a chain in a container's namespace; laid already is fine. Raises ContainerError."""
    lift_first = f":{chain} - [0:0]"  # also empties a chain that is there
    jumps = [f"-I {hook} 1 -j {chain}" for hook in ("INPUT", "OUTPUT")]
    rules = [f"-A {chain} {rule}" for block in blocks for rule in _rules(block, how)]
    document = "\n".join(["*filter", lift_first, *rules, *jumps, "COMMIT"])
    done = runtime.in_network_namespace(container, ["sh", "-c", LAY, "sh", document])
    if done.exit_code != 0:
        raise ContainerError(f"{container}: packet rules could not be laid: {done.output}")


def lift(runtime: ContainerRuntime, container: str, chain: str) -> None:
    """Remove a chain and the jumps to it. Not there, or the container has ended: fine."""
    done = in_namespace(runtime, container, ["sh", "-c", LIFT, "sh", chain])
    if done is not None and done.exit_code != 0:
        raise ContainerError(f"{container}: packet rules could not be removed: {done.output}")


def look(
    runtime: ContainerRuntime, container: str, chain: str, tries: Sequence[str] = (),
    limit_s: float = PROBE_LIMIT_S,
) -> Look | None:  # fmt: skip
    """Try addresses (`ip:port`) from a namespace, each for `limit_s` seconds, and read a chain;
    None without a namespace."""
    argv = ["bash", "-c", LOOK, "bash", MARK, str(limit_s), *tries]
    done = in_namespace(runtime, container, argv)
    if done is None:
        return None
    if done.exit_code != 0:
        raise ContainerError(f"{container}: packet rules could not be read: {done.output}")
    counted = [(name, verdict, int(n)) for n, name, verdict in COUNTED.findall(done.output)]
    chains = set(re.findall(rf"^:({MARK}\S+) ", done.output, re.M))
    return Look(
        answers={at: _answer(int(code), said) for at, code, said in PROBED.findall(done.output)},
        laid=chain in chains,
        stopped=sum(n for name, verdict, n in counted if name == chain and verdict != "RETURN"),
        passed=sum(n for name, verdict, n in counted if name == chain and verdict == "RETURN"),
        others=bool(chains - {chain}),
    )


def in_namespace(
    runtime: ContainerRuntime, container: str, argv: Sequence[str]
) -> ExecResult | None:
    """Run a tool in a namespace; None when the container, and so its namespace, has ended."""
    try:
        return runtime.in_network_namespace(container, argv)
    except ContainerError:
        if runtime.inspect(container).status in (Status.RUNNING, Status.PAUSED):
            raise
        return None


def _rules(block: Block, how: How) -> list[str]:
    """One block as iptables writes it, without its chain."""
    words = ["-s" if block.way == "in" else "-d", block.address]
    tcp = ["-p", "tcp"]
    if block.port is not None:
        at_source = (block.way == "in") == (block.port_is == "far")
        words += [*tcp, "--sport" if at_source else "--dport", str(block.port)]
    comment = ["-m", "comment", "--comment", f'"streamquake: {block.way} {block.peer}"']
    if block.passes:
        return [" ".join([*words, *comment, "-j", "RETURN"])]
    if block.opening:
        words.append("--syn")
    if how == "silent":
        return [" ".join([*words, *comment, "-j", "DROP"])]
    # The refusals themselves (resets, ICMP) must get through to those whom they tell.
    reset = ["-j", "REJECT", "--reject-with", "tcp-reset"]
    if block.opening:
        return [" ".join([*words, *comment, *reset])]
    if block.port is not None:
        return [" ".join([*words, "!", "--tcp-flags", "RST", "RST", *comment, *reset])]
    return [
        " ".join([*words, *tcp, "!", "--tcp-flags", "RST", "RST", *comment, *reset]),
        " ".join([*words, "-p", "udp", *comment, "-j", "REJECT"]),
    ]


def _answer(exit_code: int, said: str) -> str:
    """What came of an attempt: 124 is `timeout`'s own exit code."""
    if exit_code == 0:
        return "connected"
    if exit_code == 124 or TIMED_OUT in said:
        return TIMED_OUT
    return "refused" if "refused" in said else (said or f"exit code {exit_code}")
