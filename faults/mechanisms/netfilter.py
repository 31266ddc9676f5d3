"""Packet rules of the harness in the network namespaces of containers, and connection attempts
there.

Every injection has a chain of its own, named by a mark; a comment in each rule states its purpose.
One kernel transaction adds the chain, so that all of it takes effect at once or none does; healing
removes this chain and the jumps to it, and no other rules. The rules end with the namespace, that
is with a node's sandbox; they outlive its process.
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
"""What happens to a stopped packet: it is dropped without a response; or it is rejected with a TCP
reset or ICMP's "port unreachable", so that its sender fails at once."""

MARK = "STREAMQUAKE-"
PROBE_LIMIT_S = 0.3
"""How long a connection attempt waits when no answer is expected. Within one network an answer
takes a millisecond, once a shell has started."""
UNDISTURBED_S = 3.0
"""How long an attempt waits when an answer is expected, so that a slow answer of a busy machine
does not count as a partition."""
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

ADD_CHAIN = """exec iptables-restore --noflush -w <<END
$1
END
"""

REMOVE_CHAIN = r"""
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
    error=$(LC_ALL=C timeout "$limit" perl -e "$connect" "$at" 2>&1)
    echo "probe $at $?" $error
  } &
done
wait
saved=$(iptables-save -c -t filter) || exit 3
printf '%s\n' "$saved" | grep -F -e "$mark" || true
"""
"""Try some addresses, all at once, then print the harness's rules with their counters."""

COUNTED = re.compile(r"^\[(\d+):\d+\] -A (\S+) (.*)-j (DROP|REJECT|RETURN)\b", re.M)
PROBED = re.compile(r"^probe (\S+) (\d+) ?(.*)$", re.M)


@dataclass(frozen=True, kw_only=True)
class PacketRule:
    """Packets that arrive from an address or are sent to it, and what happens to them."""

    direction: Literal["in", "out"]
    peer: str
    """The name of the node or link at the address, for the comment of the rule."""
    address: str
    port: int | None = None
    """The TCP port, at the near or the far end, that limits the rule to one link; None for all
    packets."""
    port_is: Literal["far", "near"] = "far"
    passes: bool = False
    """Whether packets are only counted, to prove that this direction is still open."""
    opening: bool = False
    """Whether only packets that open a connection match."""


@dataclass(frozen=True, kw_only=True)
class PacketFilterState:
    """The state of a namespace at one poll."""

    answers: Mapping[str, str]
    """`address:port` that was tried from the namespace -> `connected`, `refused`, `timed out`, or
    another error."""
    in_place: bool
    """Whether the chain exists."""
    stopped: int
    passed: int
    """Packets that its counting rules let pass; `stopped` are those that its other rules
    stopped."""
    probes_stopped: int
    """The stopped packets that belong to the harness's own attempts."""
    other_chains: bool
    """Whether the chain of another injection exists."""


def chain_name(*words: str) -> str:
    """The chain of an injection: the same for the same words, in every process."""
    return MARK + hashlib.sha256(" ".join(words).encode()).hexdigest()[:12]


def add_chain(
    runtime: ContainerRuntime, container: str, chain: str, rules: Sequence[PacketRule], how: How
) -> None:
    """Add a chain in a container's namespace; an existing one is replaced. Raises
    ContainerError."""
    declaration = f":{chain} - [0:0]"  # also empties an existing chain
    jumps = [f"-I {hook} 1 -j {chain}" for hook in ("INPUT", "OUTPUT")]
    lines = [f"-A {chain} {line}" for rule in rules for line in _lines(rule, how)]
    document = "\n".join(["*filter", declaration, *lines, *jumps, "COMMIT"])
    done = runtime.in_network_namespace(container, ["sh", "-c", ADD_CHAIN, "sh", document])
    if done.exit_code != 0:
        raise ContainerError(f"{container}: packet rules could not be added: {done.output}")


def remove_chain(runtime: ContainerRuntime, container: str, chain: str) -> None:
    """Remove a chain and the jumps to it. It need not exist, and the container may have ended."""
    done = in_namespace(runtime, container, ["sh", "-c", REMOVE_CHAIN, "sh", chain])
    if done is not None and done.exit_code != 0:
        raise ContainerError(f"{container}: packet rules could not be removed: {done.output}")


def reset_counters(runtime: ContainerRuntime, container: str, chain: str) -> None:
    """Set the counters of a chain to zero. It need not exist, and the container may have ended."""
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
        other_chains=bool(chains - {chain}),
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


def _lines(rule: PacketRule, how: How) -> list[str]:
    """A rule in the notation of iptables, without its chain. Stopped packets are counted by two
    lines: one for the harness's own attempts, one for all other packets."""
    words = ["-s" if rule.direction == "in" else "-d", rule.address]
    tcp = ["-p", "tcp"]
    port = []
    if rule.port is not None:
        at_source = (rule.direction == "in") == (rule.port_is == "far")
        port = ["--sport" if at_source else "--dport", str(rule.port)]
    comment = ["-m", "comment", "--comment", f'"streamquake: {rule.direction} {rule.peer}"']
    if rule.passes:
        return [" ".join([*words, *(tcp if port else []), *port, *comment, "-j", "RETURN"])]
    # `--sport` precedes the multiport match, which has options of the same name.
    some = [*tcp, *port]
    probes = [*some, "-m", "multiport", "--ports", PROBE_PORTS]
    if how == "silent":
        syn = ["--syn"] if rule.opening else []
        kinds = [[*probes, *syn], [*some, *syn] if port or syn else []]
        return [" ".join([*words, *kind, *comment, "-j", "DROP"]) for kind in kinds]
    # The rejections themselves (resets, ICMP) must reach the sender.
    flags = ["--syn"] if rule.opening else ["!", "--tcp-flags", "RST", "RST"]
    reset = ["-j", "REJECT", "--reject-with", "tcp-reset"]
    lines = [[*words, *kind, *flags, *comment, *reset] for kind in (probes, some)]
    if not port and not rule.opening:
        lines.append([*words, "-p", "udp", *comment, "-j", "REJECT"])
    return [" ".join(line) for line in lines]


def _answer(exit_code: int, message: str) -> str:
    """The outcome of an attempt: 124 is `timeout`'s own exit code."""
    if exit_code == 0:
        return "connected"
    if exit_code == 124 or TIMED_OUT in message:
        return TIMED_OUT
    return "refused" if "refused" in message else (message or f"exit code {exit_code}")
