"""The tables that a run's job writes to: where they are, and that they are empty before the run."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import SparkSession

from streamquake.cluster.cluster import Cluster
from streamquake.harness.experiment.model import Experiment
from streamquake.harness.reconcile.reading.database_address import TableAddress
from streamquake.harness.reconcile.reading.database_table import is_empty, prepared_transactions
from streamquake.harness.run.published_ports import on_this_machine
from streamquake.topologies.errors import ErrorKind, StreamquakeError


class TableNotEmpty(StreamquakeError):
    """A table has rows before the run."""

    kind = ErrorKind.CLUSTER_FAILED


def has_tables(experiment: Experiment) -> bool:
    """Whether an output is a table."""
    return any(output.table is not None for output in experiment.promise.outputs.values())


def reject_filled_tables(experiment: Experiment, cluster: Cluster, spark: SparkSession) -> None:
    """Raises TableNotEmpty for a table with rows, or where prepared transactions may add some: they
    would count as the run's. Raises DatabaseUnreadable for one that cannot be read."""
    for name, output in experiment.promise.outputs.items():
        if output.address is None:
            continue
        address = reachable(cluster, output.address)
        if not is_empty(spark, address):
            raise TableNotEmpty(
                f"the table {address.name} of the output {name} has rows before the run, which are "
                "not of this run; empty it, or name another one"
            )
        if prepared := prepared_transactions(spark, address):
            raise TableNotEmpty(
                f"the database of the output {name} has {prepared} prepared transactions, which "
                "may add rows that are not of this run; commit or roll them back"
            )


def reachable(cluster: Cluster, address: TableAddress) -> TableAddress:
    """The address of a table with the published port of the service that it names, if it names
    one."""
    return replace(address, server=on_this_machine(cluster, address.server))
