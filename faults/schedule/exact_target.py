"""Targets by the names of nodes: exactly those of an injection, or one in place of several."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from streamquake.faults.schedule.target import SEPARATORS, node_names, parse_target
from streamquake.topologies.model import Topology


def narrower_targets(text: str, topology: Topology) -> Iterator[str]:
    """Targets of one node in place of several: for `all of ROLE` and `all but NODE`, each of the
    nodes; for a pair, the same at one of its ends. None for a target that is one node already, or
    known only during the run."""
    choice = parse_target(text)
    if choice.how in ("all of", "all but"):
        yield from sorted(node_names(choice, topology) or ())
    if not choice.ends:
        return
    words = text.split()
    middle = words.index(SEPARATORS[choice.how])
    ends = " ".join(words[1:middle]), " ".join(words[middle + 1 :])
    pairs = [(node, ends[1]) for node in narrower_targets(ends[0], topology)]
    pairs += [(ends[0], node) for node in narrower_targets(ends[1], topology)]
    pairs = [(source, target) for source, target in pairs if source != target]
    yield from (f"{words[0]} {source} {words[middle]} {target}" for source, target in pairs)


def bound_target(text: str, names: Sequence[str], topology: Topology) -> str:
    """A target that matches exactly what an injection was called on, by the recorded names. A link,
    the workload and the job are themselves. Raises LookupError where no target matches exactly
    these."""
    choice = parse_target(text)
    if choice.target_kind not in ("nodes", "pairs"):
        return text
    if choice.target_kind == "nodes":
        return _text_of_nodes(names, topology)
    arrow, how = ("<->", "between") if choice.how == "between" else ("->", "from")
    pairs = {tuple(name.split(arrow)) for name in names}
    if not all(len(pair) == 2 for pair in pairs) or not pairs:
        raise LookupError(f"{', '.join(names) or 'nothing'} is no pair of nodes")
    sources, targets = ({pair[end] for pair in pairs} for end in (0, 1))
    if pairs != {(a, b) for a in sources for b in targets if a != b}:
        raise LookupError(f"no target is exactly {', '.join(names)}")
    ends = [_text_of_nodes(sorted(end), topology) for end in (sources, targets)]
    return f"{how} {ends[0]} {SEPARATORS[how]} {ends[1]}"


def _text_of_nodes(names: Sequence[str], topology: Topology) -> str:
    """The target that matches exactly these nodes. Raises LookupError where there is none."""
    if len(names) == 1:
        return names[0]
    for role in topology.roles():
        of_role = [node.name for node in topology.nodes() if node.role_name == role]
        missing = [name for name in of_role if name not in names]
        if names and {*names} <= {*of_role} and len(missing) < 2:
            return f"all but {missing[0]}" if missing else f"all of {role}"
    raise LookupError(f"no target is exactly {', '.join(names) or 'no node'}")
