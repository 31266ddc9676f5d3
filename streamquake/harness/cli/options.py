"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path

import click

out_option = click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), default=Path("runs"),
    show_default=True, help="Folder of the run folders.",
)  # fmt: skip
master_option = click.option(
    "--master", default="local[*]", show_default=True, metavar="URL",
    help="Spark master that reconciles.",
)  # fmt: skip
plain_option = click.option("--plain", is_flag=True, help="Plain lines instead of a live panel.")
keep_option = click.option("--keep", is_flag=True, help="Leave the cluster up, as `up` does.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")
run_option = click.option(
    "--run", "run_id", metavar="ID", help="Which kept cluster; the latest unless given."
)
