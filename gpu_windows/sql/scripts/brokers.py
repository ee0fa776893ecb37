"""Whether brokers of Kafka answer, before a query that reads them starts."""

from __future__ import annotations

import socket

from gpu_windows.sql.scripts.table_options import TableOptions

_SERVERS, _TIMEOUT_S = "properties.bootstrap.servers", 5.0


def check_brokers(options: TableOptions) -> None:
    """Raise `SqlError` if none of the servers of a table takes a connection of this process.

    Spark asks them for offsets from here, the driver, and would try for minutes.
    """
    failures = []
    for server in options.require(_SERVERS).split(","):
        host, _, port = server.strip().rpartition(":")
        if not host or not port.isdigit():
            raise options.error(f"'{_SERVERS}' has host:port, with commas between them", server)
        try:
            address = (host.rpartition("/")[2].strip("[]"), int(port))
            with socket.create_connection(address, timeout=_TIMEOUT_S):
                return
        except (OSError, OverflowError) as error:
            failures.append(f"{server.strip()} ({error})")
    rule = f"no broker of Kafka answers this process: start it, or correct '{_SERVERS}'"
    raise options.error(rule, ", ".join(failures))
