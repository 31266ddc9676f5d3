"""Completion in the shell: the names that an argument or an option takes.

A shell starts the program at each completion, so nothing here connects to an engine, and of the
shipped files only those are read whose names match.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from streamquake.faults.fault import faults
from streamquake.harness.experiment.check import checks
from streamquake.harness.experiment.loader import EXPERIMENTS
from streamquake.reports.record.run_folder import LATEST, list_runs
from streamquake.reports.store.results_store import ResultsStore
from streamquake.topologies.docstrings import summary
from streamquake.topologies.errors import StreamquakeError
from streamquake.topologies.named_files import SHIPPED
from streamquake.topologies.parameters import parameters
from streamquake.topologies.shipped_documents import shipped_descriptions

Items = list[CompletionItem[str]]
Complete = Callable[[click.Context, click.Parameter, str], Items]


def words(known: Iterable[str], incomplete: str) -> Items:
    """The known words that begin with what is written."""
    return [CompletionItem(word) for word in known if word.startswith(incomplete)]


def described_words(known: Mapping[str, str], incomplete: str) -> Items:
    """The same, with their descriptions, which zsh and fish show."""
    return [
        CompletionItem(word, help=text)
        for word, text in known.items()
        if word.startswith(incomplete)
    ]


def documents_in(*folders: Path) -> Complete:
    """Completes the names of the shipped documents of these folders, and paths."""

    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> Items:
        # First, because in bash the request for paths removes the words before it.
        found: Items = [CompletionItem(incomplete, type="file")]
        for folder in folders:
            found += described_words(shipped_descriptions(folder, incomplete), incomplete)
        return found

    return complete


complete_topology = documents_in(SHIPPED)
complete_experiment = documents_in(EXPERIMENTS)


def complete_run(context: click.Context, parameter: click.Parameter, incomplete: str) -> Items:
    """Completes the runs in the folder of `--out`, newest first, and folders by path."""
    runs = [folder.run_id for folder in list_runs(_out(context))]
    latest = [LATEST] if runs else []
    return [CompletionItem(incomplete, type="dir"), *words([*latest, *runs], incomplete)]


def complete_fault(context: click.Context, parameter: click.Parameter, incomplete: str) -> Items:
    """Completes the names of faults."""
    return described_words({name: summary(fault) for name, fault in faults.items()}, incomplete)


def complete_parameter(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> Items:
    """Completes the parameters of the fault that is written before them."""
    fault = faults.get(str(context.params.get("fault")))
    known = parameters(fault) if fault is not None else []
    return words((f"{each['name']}=" for each in known), incomplete)


def complete_figure(context: click.Context, parameter: click.Parameter, incomplete: str) -> Items:
    """Completes the figures of the recorded runs in the folder of `--out`, then the checks."""
    known: dict[str, None] = {}
    with suppress(StreamquakeError):  # a damaged database is reported when the command is run
        known = {
            figure: None for run in ResultsStore(_out(context)).runs() for figure in run.figures
        }
    return words([*sorted(known), *(f"{check}." for check in checks)], incomplete)


def _out(context: click.Context) -> Path:
    return Path(context.params.get("out") or "runs")
