"""Packet rules of the harness in the network namespaces of containers, and connection attempts
there.

Every injection has a chain of its own, named by a mark; a comment in each rule states its purpose.
One kernel transaction adds the chain, so that all of it takes effect at once or none does; healing
removes this chain and the jumps to it, and no other rules. The rules end with the namespace when
the container ends.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from streamquake.cluster.runtime.runtime import (
    ContainerError,
    ContainerRuntime,
    ContainerStatus,
    ExecResult,
)

How = Literal["silent", "reset"]
"""What happens to a stopped packet: it is dropped without a response; or it is refused with a TCP
reset or ICMP's "port unreachable", so that its sender fails at once."""

MARK = "STREAMQUAKE-"
PROBE_LIMIT_S = 0.3
"""How long a connection attempt waits when no answer is expected. An answer takes a millisecond
within one network, after the start of a shell."""
UNDISTURBED_S = 3.0
"""How long an attempt waits when an answer is expected, so that a busy machine is not taken for a
partition."""
TIMED_OUT = "timed out"
PROBE_PORTS = "61000:64999"
"""The source ports of the harness's own attempts, above the ports that the kernel gives to other
processes (`ip_local_port_range`, 32768 to 60999), so that rules distinguish probes from the
system's packets."""

CONNECT = r"""
use Socket; use Errno;
my ($at, $sends) = @ARGV; my ($ip, $port) = split /:/, $at; my $socket;
for (1 .. 9) {
  socket($socket, PF_INET, SOCK_STREAM, 0) or die "$!\n";
  bind($socket, sockaddr_in(61000 + int rand 4000, INADDR_ANY)) or next;
  last if connect($socket, sockaddr_in($port, inet_aton($ip)));
  die "$!\n" unless $!{EADDRNOTAVAIL};
}
exit 0 unless defined $sends;
syswrite($socket, $sends); vec(my $ready, fileno($socket), 1) = 1;
select($ready, undef, undef, 0.3) or exit 142;
defined(my $read = sysread($socket, my $data, 1)) or die "$!\n";
exit !$read;
"""
"""Connect to an `address:port` from one of the probe ports; with a second word, send it and wait
for an answer: 0 for an answer, 1 for the end of the data, 142 for silence. The error's name goes to
stderr."""

APPLY = """exec iptables-restore --noflush -w <<END
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

INSPECT = r"""
mark=$1 limit=$2 connect=$3; shift 3
for at; do
  {
    said=$(LC_ALL=C timeout "$limit" perl -e "$connect" "$at" 2>&1)
    echo "probe $at $?" $said
  } &
done
wait
saved=$(iptables-save -c -t filter) || exit 3
printf '%s\n' "$saved" | grep -F -e "$mark" || true
"""
"""Try some addresses, all at once, and then show our rules with what they have counted."""

COUNTED = re.compile(r"^\[(\d+):\d+\] -A (\S+) (.*)-j (DROP|REJECT|RETURN)\b", re.M)
PROBED = re.compile(r"^probe (\S+) (\d+) ?(.*)$", re.M)


@dataclass(frozen=True, kw_only=True)
class PacketRule:
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
class PacketFilterState:
    """What one look into a namespace has shown."""

    answers: Mapping[str, str]
    """`address:port` tried from there -> `connected`, `refused`, `timed out`, or other words."""
    in_place: bool
    """Whether the chain is there."""
    stopped: int
    passed: int
    """Packets that its rules have stopped, and that its counting rules have let pass."""
    probes_stopped: int
    """Those of the stopped packets that belong to our own attempts."""
    others: bool
    """Whether the chain of another of our injections is there."""


def chain_named(*words: str) -> str:
    """The chain of an injection: the same for the same words, in every process."""
    return MARK + hashlib.sha256(" ".join(words).encode()).hexdigest()[:12]


def apply(
    runtime: ContainerRuntime, container: str, chain: str, blocks: Sequence[PacketRule], how: How
) -> None:
    """Lay a chain in a container's namespace; laid already is fine. Raises ContainerError."""
    lift_first = f":{chain} - [0:0]"  # also empties a chain that is there
    jumps = [f"-I {hook} 1 -j {chain}" for hook in ("INPUT", "OUTPUT")]
    rules = [f"-A {chain} {rule}" for block in blocks for rule in _rules(block, how)]
    document = "\n".join(["*filter", lift_first, *rules, *jumps, "COMMIT"])
    done = runtime.in_network_namespace(container, ["sh", "-c", APPLY, "sh", document])
    if done.exit_code != 0:
        raise ContainerError(f"{container}: packet rules could not be laid: {done.output}")


def lift(runtime: ContainerRuntime, container: str, chain: str) -> None:
    """Remove a chain and the jumps to it. Not there, or the container has ended: fine."""
    done = in_namespace(runtime, container, ["sh", "-c", LIFT, "sh", chain])
    if done is not None and done.exit_code != 0:
        raise ContainerError(f"{container}: packet rules could not be removed: {done.output}")


def count_anew(runtime: ContainerRuntime, container: str, chain: str) -> None:
    """Set the counters of a chain to nothing. Not there, or the container has ended: fine."""
    in_namespace(runtime, container, ["iptables", "-w", "-Z", chain])


def poll(
    runtime: ContainerRuntime,
    container: str,
    chain: str,
    tries: Sequence[str] = (),
    limit_s: float = PROBE_LIMIT_S,
) -> PacketFilterState | None:
    """Try addresses (`ip:port`) from a namespace, each for `limit_s` seconds, and read a chain;
    None without a namespace."""
    argv = ["bash", "-c", INSPECT, "bash", MARK, str(limit_s), CONNECT, *tries]
    done = in_namespace(runtime, container, argv)
    if done is None:
        return None
    if done.exit_code != 0:
        raise ContainerError(f"{container}: packet rules could not be read: {done.output}")
    counted = [
        (verdict, PROBE_PORTS in words, int(n))
        for n, name, words, verdict in COUNTED.findall(done.output)
        if name == chain
    ]
    chains = set(re.findall(rf"^:({MARK}\S+) ", done.output, re.M))
    return PacketFilterState(
        answers={
            at: _answer(int(code), message) for at, code, message in PROBED.findall(done.output)
        },
        in_place=chain in chains,
        stopped=sum(n for verdict, _, n in counted if verdict != "RETURN"),
        passed=sum(n for verdict, _, n in counted if verdict == "RETURN"),
        probes_stopped=sum(n for verdict, probes, n in counted if probes and verdict != "RETURN"),
        others=bool(chains - {chain}),
    )


def in_namespace(
    runtime: ContainerRuntime, container: str, argv: Sequence[str]
) -> ExecResult | None:
    """Run a tool in a namespace; None when the container, and so its namespace, has ended."""
    try:
        return runtime.in_network_namespace(container, argv)
    except ContainerError:
        if runtime.inspect(container).status in (ContainerStatus.RUNNING, ContainerStatus.PAUSED):
            raise
        return None


def _rules(block: PacketRule, how: How) -> list[str]:
    """One block as iptables writes it, without its chain. What is stopped is counted by two rules:
    packets of our own attempts, and all others."""
    words = ["-s" if block.way == "in" else "-d", block.address]
    tcp = ["-p", "tcp"]
    port = []
    if block.port is not None:
        at_source = (block.way == "in") == (block.port_is == "far")
        port = ["--sport" if at_source else "--dport", str(block.port)]
    comment = ["-m", "comment", "--comment", f'"streamquake: {block.way} {block.peer}"']
    if block.passes:
        return [" ".join([*words, *(tcp if port else []), *port, *comment, "-j", "RETURN"])]
    # A port before the match of several ports, which has an option of the same name.
    some = [*tcp, *port]
    probes = [*some, "-m", "multiport", "--ports", PROBE_PORTS]
    if how == "silent":
        syn = ["--syn"] if block.opening else []
        kinds = [[*probes, *syn], [*some, *syn] if port or syn else []]
        return [" ".join([*words, *kind, *comment, "-j", "DROP"]) for kind in kinds]
    # The refusals themselves (resets, ICMP) must get through to those whom they tell.
    flags = ["--syn"] if block.opening else ["!", "--tcp-flags", "RST", "RST"]
    reset = ["-j", "REJECT", "--reject-with", "tcp-reset"]
    rules = [[*words, *kind, *flags, *comment, *reset] for kind in (probes, some)]
    if not port and not block.opening:
        rules.append([*words, "-p", "udp", *comment, "-j", "REJECT"])
    return [" ".join(rule) for rule in rules]


def _answer(exit_code: int, message: str) -> str:
    """What came of an attempt: 124 is `timeout`'s own exit code."""
    if exit_code == 0:
        return "connected"
    if exit_code == 124 or TIMED_OUT in message:
        return TIMED_OUT
    return "refused" if "refused" in message else (message or f"exit code {exit_code}")
