"""The settings, as Meltano knows them.

Each is an entry point of its own (``meltano.settings``), under
``state_backend.clickhouse.<name>`` and, in the environment,
``MELTANO_STATE_BACKEND_CLICKHOUSE_<NAME>``. None has a value here: Meltano
would give the default as if somebody had set it, over what the URI says. The
defaults are in the descriptions, and hold where neither setting nor URI says
anything.

The kinds are those that Meltano 3.7 knows (it has none for fractions, which
are therefore strings): one entry point that fails to load breaks every
Meltano command. Switches that the older plugin did not have are strings too:
Meltano takes every text that it does not know for false, so that a misspelt
``verify`` would turn the check off.
"""

from __future__ import annotations

import re
import typing as t

from meltano.core.setting_definition import SettingDefinition, SettingKind

from .errors import InvalidSettingsError

NAMESPACE = "state_backend.clickhouse"


def _setting(
    name: str,
    label: str,
    description: str,
    kind: SettingKind = SettingKind.STRING,
    *,
    sensitive: bool = False,
) -> SettingDefinition:
    return SettingDefinition(
        name=f"{NAMESPACE}.{name}",
        label=f"ClickHouse {label}",
        description=description,
        kind=kind,
        sensitive=sensitive or None,
        env_specific=True,
    )


CLICKHOUSE_HOST = _setting(
    "host",
    "Host",
    "ClickHouse server hostname (default: localhost)",
)
CLICKHOUSE_PORT = _setting(
    "port",
    "Port",
    "ClickHouse HTTP interface port (default: 8123, with TLS 8443)",
    SettingKind.INTEGER,
)
CLICKHOUSE_DATABASE = _setting(
    "database",
    "Database",
    "ClickHouse database name (required, here or in the URI)",
)
CLICKHOUSE_USER = _setting(
    "user",
    "User",
    "ClickHouse username (required, here or in the URI)",
)
CLICKHOUSE_PASSWORD = _setting(
    "password",
    "Password",
    "ClickHouse password (default: empty)",
    sensitive=True,
)
CLICKHOUSE_SECURE = _setting(
    "secure",
    "Secure (TLS)",
    "Connect over HTTPS/TLS (default: false, but true for ports 443 and 8443 and for *.clickhouse.cloud)",
    SettingKind.BOOLEAN,
)
CLICKHOUSE_SCHEMA = _setting(
    "schema",
    "Database/Schema",
    "ClickHouse database in which the state tables are (default: meltano)",
)
CLICKHOUSE_TABLE = _setting(
    "table",
    "Table",
    "ClickHouse table for state; the lock's and the history's are named after it (default: state)",
)
CLICKHOUSE_PROTOCOL = _setting(
    "protocol",
    "Protocol",
    "http, or native for ClickHouse's own protocol on ports 9000 and 9440 (default: http)",
)
CLICKHOUSE_CREATE_TABLES = _setting(
    "create_tables",
    "Create Tables",
    "auto lets the first write make missing tables, never sends no DDL (default: auto)",
)
CLICKHOUSE_ASYNC_INSERT = _setting(
    "async_insert",
    "Async Insert",
    "Let the server gather the inserts of very many writers (default: false)",
)
CLICKHOUSE_PASSWORD_FILE = _setting(
    "password_file",
    "Password File",
    "File that holds the password",
)
CLICKHOUSE_ACCESS_TOKEN = _setting(
    "access_token",
    "Access Token",
    "JSON Web Token for ClickHouse Cloud, in the place of a password",
    sensitive=True,
)
CLICKHOUSE_VERIFY = _setting(
    "verify",
    "Verify",
    "Check the server's TLS certificate (default: true)",
)
CLICKHOUSE_CA_CERT = _setting(
    "ca_cert",
    "CA Certificate",
    "PEM file of the authority that signed the server's certificate",
)
CLICKHOUSE_CLIENT_CERT = _setting(
    "client_cert",
    "Client Certificate",
    "PEM file of the certificate to show to the server",
)
CLICKHOUSE_CLIENT_CERT_KEY = _setting(
    "client_cert_key",
    "Client Certificate Key",
    "PEM file of that certificate's key",
)
CLICKHOUSE_SERVER_HOST_NAME = _setting(
    "server_host_name",
    "Server Host Name",
    "Name expected in the server's certificate, where it is not the host",
)
CLICKHOUSE_PROXY_PATH = _setting(
    "proxy_path",
    "Proxy Path",
    "Path before the HTTP interface, behind a reverse proxy",
)
CLICKHOUSE_HTTP_PROXY = _setting(
    "http_proxy",
    "HTTP Proxy",
    "URL of the proxy (default: HTTP_PROXY, HTTPS_PROXY and NO_PROXY of the environment)",
)
CLICKHOUSE_CONNECT_TIMEOUT = _setting(
    "connect_timeout",
    "Connect Timeout",
    "Seconds for one attempt to connect (default: 10)",
    SettingKind.INTEGER,
)
CLICKHOUSE_SEND_RECEIVE_TIMEOUT = _setting(
    "send_receive_timeout",
    "Send/Receive Timeout",
    "Seconds for one request (default: 300)",
    SettingKind.INTEGER,
)
CLICKHOUSE_CLUSTER = _setting(
    "cluster",
    "Cluster",
    "Cluster on which the tables are made (ON CLUSTER)",
)
CLICKHOUSE_ENGINE = _setting(
    "engine",
    "Engine",
    "Engine of the tables that are made (default: auto)",
)
CLICKHOUSE_LOCK_STRATEGY = _setting(
    "lock_strategy",
    "Lock Strategy",
    "auto, table, keeper or settle (default: auto)",
)
CLICKHOUSE_LOCK_SETTLE_SECONDS = _setting(
    "lock_settle_seconds",
    "Lock Settle Seconds",
    "Seconds that the strategy settle waits before it looks (default: 1.0)",
)
CLICKHOUSE_LOCK_WAIT_SECONDS = _setting(
    "lock_wait_seconds",
    "Lock Wait Seconds",
    "Seconds to wait for a lock before giving up with the holder's name (default: 30)",
)
CLICKHOUSE_LOCK_LINGER_SECONDS = _setting(
    "lock_linger_seconds",
    "Lock Linger Seconds",
    "Seconds for which a released lock is kept for the next update of its state id (default: 1.0)",
)
CLICKHOUSE_HISTORY_DAYS = _setting(
    "history_days",
    "History Days",
    "Days for which replaced states are kept; 0 turns the history off (default: 30)",
    SettingKind.INTEGER,
)

SETTINGS: tuple[SettingDefinition, ...] = tuple(
    value for name, value in list(globals().items()) if name.startswith("CLICKHOUSE_")
)
"""All of them, in the order of the documentation."""


_OWN = {"lock_timeout_seconds": (120, "10"), "lock_retry_seconds": (100_000_000, "1")}
"""Meltano's own, with the most that they may be and an example."""

_WHOLE = re.compile(r"\+?[0-9]{1,9}")


def check_own(settings: t.Mapping[str, t.Any]) -> None:
    """Refuse a value of Meltano's own lock settings that cannot be used.

    The others are checked where the URI is read (``uri.connection_params``).

    Raises:
        InvalidSettingsError: naming the setting, its value and what it takes.

    """
    for name, (most, example) in _OWN.items():
        value = settings.get(name)
        if value is None or value == "":
            continue
        text = str(value).strip(" \t")
        if not _WHOLE.fullmatch(text) or not 1 <= int(text) <= most:
            msg = (
                f'state_backend.{name} is "{text[:40]}", which cannot be used — '
                f"write a whole number from 1 to {most}, such as {example}"
            )
            raise InvalidSettingsError(msg)


NAMES = frozenset(_OWN) | {setting.name.rpartition(".")[2] for setting in SETTINGS}
"""The keyword arguments of the manager that are settings."""
