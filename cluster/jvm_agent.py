"""The rule agent of a node's JVM: Byteman, loaded into the running JVM when it is first needed.

The agent's jar is in the image. Only a node with rules in the topology starts with the agent: an
agent on the command line disables the JVM's class archive and slows every start. In other nodes it
is attached to the running JVM when needed. Its listener uses only the loopback of the container's
own network namespace, so that no port is published and no network fault disconnects it. A rule
stores its counts in system properties, which the listener reports.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from streamquake.cluster.runtime.runtime import ContainerRuntime
from streamquake.topologies.errors import ErrorKind, StreamquakeError

JAR = "/opt/streamquake/byteman.jar"
PORT = 9091
LISTENER = f"listener:true,address:127.0.0.1,port:{PORT}"
PROPERTIES = "org.jboss.byteman."
"""The listener reads and sets only system properties with this prefix."""
MAIN_PROCESS = "1"
ATTACH_LIMIT_S = 20
ANSWER_LIMIT_S = 10

ATTACH = r"""
use strict; use Socket;
my ($pid, $jar, $options, $limit_s) = @ARGV;
alarm $limit_s;
my ($request, $socket) = ("/tmp/.attach_pid$pid", "/tmp/.java_pid$pid");
if (!-S $socket) {
  open(my $file, '>', $request) or die "$request: $!\n"; close $file;
  kill 'QUIT', $pid or die "process $pid: $!\n";
  until (-S $socket) { select(undef, undef, undef, 0.01); }
  unlink $request;
}
socket(my $jvm, AF_UNIX, SOCK_STREAM, 0) or die "socket: $!\n";
connect($jvm, sockaddr_un($socket)) or die "$socket: $!\n";
syswrite($jvm, join("\0", 1, 'load', 'instrument', 'false', "$jar=$options", ''));
print while <$jvm>;
"""
"""The attach protocol of HotSpot: a file and SIGQUIT open its socket, `load` loads the agent."""

CONVERSE = """
port=$1; limit_s=$2; shift 2
for command; do
  { exec 3<>"/dev/tcp/127.0.0.1/$port"; } 2>/dev/null || exit 7
  printf '%s\\n' "$command" >&3
  while IFS= read -r -t "$limit_s" line <&3 || exit 8; do
    [ "$line" = OK ] && break
    printf '%s\\n' "$line"
  done
  echo END-OF-ANSWER
done
"""
"""One connection for each command; every answer of the listener ends with the line `OK`."""
NOT_LISTENING, NO_ANSWER = 7, 8

CHECK = """
classes=$(tr '\\0' '\\n' </proc/1/cmdline | grep -A1 -xE -e '-(cp|classpath)' | tail -n 1)
script=$(mktemp) && printf '%s\\n' "$2" >"$script" || exit
"$(readlink /proc/1/exe)" -Xmx128m -cp "$1:$classes" org.jboss.byteman.check.TestScript "$script"
rm -f "$script"
"""
"""Byteman's own checker, in a JVM of the same version with the same class path."""
CHECK_LIMIT_S = 60
UNREADABLE = re.compile(
    r'^ERROR : Failed to parse rule "(.+)" loaded from .*\n(?:.*\n)?.*?(line \d+ : .*)$',
    re.MULTILINE,
)
END = "END-OF-ANSWER\n"
EXCEPTION = "org.jboss.byteman.rule.exception."
RULE = re.compile(r"^RULE (.+)$", re.MULTILINE)


def agent_option(script: str, classes: str) -> str:
    """The flag of a JVM that applies rules from its start, from a file in the container. Rules may
    call the classes of a jar, which go to the JVM's class path.

    It starts the listener too: an agent is loaded only once, and faults need its listener.
    """
    return f"-javaagent:{JAR}=script:{script},sys:{classes},{LISTENER}"


class AgentError(StreamquakeError):
    """The agent could not be loaded, or rejected or did not answer a command."""

    kind = ErrorKind.CLUSTER_FAILED


@dataclass(frozen=True, kw_only=True)
class Rules:
    """The rules of a JVM's agent: name -> text with the agent's report on the rule; and the system
    properties under `org.jboss.byteman.`, without that prefix."""

    texts: Mapping[str, str]
    properties: Mapping[str, str]

    @property
    def errors(self) -> Mapping[str, str]:
        """Rule -> the JVM's error when it first applied it, such as a wrong type. The agent reads a
        rule only when its class is loaded."""
        return {
            name: line
            for name, text in self.texts.items()
            for line in text.splitlines()
            if line.startswith(EXCEPTION)
        }


class JvmAgent:
    """The agent in one container's main process.

    Every call may raise AgentError, and ContainerError where the container does not run.
    """

    def __init__(self, runtime: ContainerRuntime, container: str) -> None:
        self._runtime = runtime
        self._container = container

    def load(self) -> None:
        """Load the agent into the JVM, unless it is loaded already."""
        if self._converse("VERSION") is not None:
            return
        script = ["perl", "-e", ATTACH, MAIN_PROCESS, JAR, LISTENER, str(ATTACH_LIMIT_S)]
        done = self._runtime.exec(self._container, script, timeout_s=ATTACH_LIMIT_S + 5)
        if "return code: 0" not in done.output:
            raise AgentError(
                f"{self._container}: the JVM did not load {JAR} (exit {done.exit_code}): "
                f"{done.output.strip() or 'no answer'}; is the main process a HotSpot JVM?"
            )

    def rules(self) -> Rules | None:
        """Its rules and counts; None when no agent is loaded, and so no rule exists."""
        answers = self._converse("LIST", "LISTSYSPROPS")
        if answers is None:
            return None
        listed, properties = answers
        blocks = re.split(r"^# File .*\n", listed, flags=re.MULTILINE)
        pairs = (line.partition("=") for line in properties.splitlines())
        return Rules(
            texts={found[1]: block for block in blocks if (found := RULE.search(block))},
            properties={key.removeprefix(PROPERTIES): value for key, _, value in pairs},
        )

    def unreadable(self, script: str) -> Mapping[str, str]:
        """The rules of a script that cannot be parsed -> why. The agent leaves such a rule out
        without a report. It takes a second or two."""
        call = ["bash", "-c", CHECK, "check", JAR, script]
        done = self._runtime.exec(self._container, call, timeout_s=CHECK_LIMIT_S)
        return dict(UNREADABLE.findall(done.output))

    def install(self, script: str) -> None:
        """Install rules; load the agent first if it is not loaded. A rule replaces an earlier rule
        of the same name."""
        command = f"LOAD\nSCRIPT streamquake\n{script}ENDSCRIPT\nENDLOAD"
        answers = self._converse(command)
        if answers is None:
            self.load()
            answers = self._commands(command)
        if rejected := re.findall(r"^(?:ERROR|EXCEPTION).*$", answers[0], re.MULTILINE):
            raise AgentError(f"{self._container}: the agent rejected a rule: {' '.join(rejected)}")

    def remove(self, names: Iterable[str]) -> None:
        """Remove rules by name; a rule that does not exist counts as removed."""
        rules = "".join(f"RULE {name}\n" for name in names)
        self._commands(f"DELETE\nSCRIPT streamquake\n{rules}ENDSCRIPT\nENDDELETE")

    def forget(self, properties: Iterable[str]) -> None:
        """Clear system properties, named without their prefix."""
        cleared = "".join(f"{PROPERTIES}{key}=\n" for key in properties)
        self._commands(f"SETSYSPROPS\n{cleared}ENDSETSYSPROPS")

    def _commands(self, *commands: str) -> Sequence[str]:
        answers = self._converse(*commands)
        if answers is None:
            raise AgentError(f"{self._container}: no agent listens in the JVM; load it first")
        return answers

    def _converse(self, *commands: str) -> Sequence[str] | None:
        """The answers to some commands, or None when no agent listens."""
        call = ["bash", "-c", CONVERSE, "agent", str(PORT), str(ANSWER_LIMIT_S), *commands]
        done = self._runtime.in_network_namespace(self._container, call)
        if done.exit_code == NOT_LISTENING:
            return None
        answers = done.output.split(END)[:-1]
        if done.exit_code != 0 or len(answers) != len(commands):
            raise AgentError(
                f"{self._container}: the agent did not answer {commands[0].split()[0]} within "
                f"{ANSWER_LIMIT_S} s (exit {done.exit_code}): {done.output.strip() or 'nothing'}"
            )
        return answers
