"""Read a state backend URI: the twin of the Go parser (internal/config/uri.go).

Both are held to the same corpus (internal/config/testdata/uri_corpus.json), which
says for each URI what must come out, the texts of errors included.
"""

from __future__ import annotations

import re
import typing as t

from .errors import InvalidSettingsError, MissingSettingsError
from .values import (
    KINDS,
    SETTING,
    choose_login,
    has_control,
    is_host_name,
    is_ipv6,
    lower,
    lower_host,
    port_and_tls,
    problem,
    quote,
    text_of,
)

if t.TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["connection_params", "connection_params_from_uri", "table_names"]

URI_FORM = "write clickhouse://user:password@host:8123/database"
VARIABLE = "MELTANO_STATE_BACKEND_CLICKHOUSE_"


def connection_params_from_uri(uri: str, **settings: t.Any) -> dict[str, t.Any]:
    """Give the keyword arguments of `clickhouse_connect.get_client` for a URI.

    Args:
        uri: `clickhouse://user:password@host:port/database?parameters`.
        settings: host, port, database, user, password, secure and the like, over what the URI says.

    Returns:
        Always host, port, username, password, database and secure; others, such
        as verify or settings, where the URI has them.

    Raises:
        InvalidURIError: The URI cannot be used.
        MissingSettingsError: The URI names no user or no database.

    """
    return connection_params(uri, settings)


def connection_params(uri: str, settings: Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Give the keyword arguments for a URI with Meltano's settings laid over it.

    Args:
        uri: The URI.
        settings: Values by the last part of their setting's name ("user"); None
            and "" mean that a setting is not given.

    Returns:
        As `connection_params_from_uri`.

    Raises:
        InvalidURIError: The URI, or a value in it, cannot be used.
        InvalidSettingsError: A setting has a value that cannot be used.
        MissingSettingsError: Neither names a user, or a database.

    """
    parsed, server_settings = _parse(uri)
    # name: (text, where it was given, rank of that)
    given: dict[str, tuple[str, str, int]] = {}
    for name, (text, source) in parsed.items():
        given[name] = (text, source, 1)
    for name, value in settings.items():
        if name in KINDS and value is not None and value != "":
            given[name] = (text_of(name, value), "Meltano", 2)

    values = {}
    for name, read in KINDS.items():
        if name in given:
            text, source, _ = given[name]
            values[name] = read(name, text, source)
    choose_login(given, values)
    port, secure = port_and_tls(values)
    for name in ("user", "database"):
        if name not in values and not (name == "user" and "access_token" in values):
            reason = f"{SETTING}{name} is required and not set — {URI_FORM} in the URI, or set {VARIABLE}{name.upper()}"
            raise MissingSettingsError(reason)

    params: dict[str, t.Any] = {
        "host": values.get("host", "localhost"),
        "port": port,
        # A token takes the place of user and password: the client refuses both.
        "username": "" if "access_token" in values else values.get("user", ""),
        "password": values.get("password", ""),
        "database": values["database"],
        "secure": secure,
    }
    params |= {name: values[name] for name in _CLIENT_PARAMS if name in values}
    if "http_proxy" in values:
        params["https_proxy" if secure else "http_proxy"] = values["http_proxy"]
    if server_settings:
        params["settings"] = server_settings
    return params


def table_names(uri: str, settings: Mapping[str, t.Any]) -> tuple[str, str]:
    """Give the schema and the name of the state table; arguments and errors as `connection_params`."""
    parsed, _ = _parse(uri)
    schema, table = (
        text_of(name, settings[name]) if settings.get(name) else parsed.get(name, (default, ""))[0]
        for name, default in (("schema", "meltano"), ("table", "state"))
    )
    return schema, table


# The arguments of get_client that are settings of the same name, apart from the six that are always given.
_CLIENT_PARAMS = (
    "access_token",
    "verify",
    "ca_cert",
    "client_cert",
    "client_cert_key",
    "server_host_name",
    "proxy_path",
    "connect_timeout",
    "send_receive_timeout",
)


# Patterns are compiled when they are used: most of a parse needs few of them,
# and importing this module must cost next to nothing.
_SCHEME = r"[a-z][a-z0-9+.-]*"
_SERVER_SETTING = r"ch_[A-Za-z_][A-Za-z0-9_]*"
_NAMED_SAFELY = r"[A-Za-z0-9_.-]{1,40}"
_PERCENT = rb"%([0-9A-Fa-f]{2})"
_SECRET = {"password", "access_token", "http_proxy"}
_AT_ALLOWED = ("user", "password", "access_token", "http_proxy")


def _parse(uri: str) -> tuple[dict[str, tuple[str, str]], dict[str, str]]:
    """Give the settings in a URI with their source, and the server settings."""
    uri = uri.strip(" \t\r\n")
    try:
        uri.encode()
    except UnicodeEncodeError:
        raise problem("the URI is not UTF-8", "percent-encode the UTF-8 form of what is not ASCII") from None
    if has_control(uri):
        raise problem("the URI has a control character in it", "remove it, or percent-encode it")
    rest = _cut_scheme(uri)
    if "#" in rest:
        raise _raw("#")
    rest, _, query = rest.partition("?")
    authority, _, path = rest.partition("/")
    if "@" in path:
        raise _raw("/")
    bad_query = None
    params: dict[str, str] = {}
    try:
        params = _split_query(query)
    except InvalidSettingsError as err:
        if "@" in query:  # what follows makes no sense of a password cut in two
            raise
        bad_query = err

    found: dict[str, tuple[str, str]] = {}
    userinfo, at, hostport = authority.rpartition("@")
    if at:
        for char in "[]":
            if char in userinfo:
                raise _raw(char)
        user, _, password = userinfo.partition(":")
        found["user"] = (_decode("user", user), "the URI")
        found["password"] = (_decode("password", password), "the URI")
    host, port = _split_host(hostport)
    found["host"], found["port"] = (host, "the URI"), (port, "the URI")
    if bad_query:
        raise bad_query
    path = path.removesuffix("/")
    if "/" in path:
        raise problem("the URI's path is more than a database", URI_FORM)
    found["database"] = (_decode("database", path), "the URI")

    server_settings = {}
    for name, encoded in params.items():
        text = _decode(f"parameter {name}", encoded)
        if name.startswith("ch_"):
            server_settings[name.removeprefix("ch_")] = text
        elif text:
            found[name] = (text, f"the URI's parameter {name}")
    return {name: f for name, f in found.items() if f[0]}, server_settings


def _cut_scheme(uri: str) -> str:
    scheme, separator, rest = uri.partition("://")
    scheme = lower(scheme)
    if not separator or not re.fullmatch(_SCHEME, scheme):
        raise problem("the URI does not begin with clickhouse://", URI_FORM)
    if scheme == "clickhouse":
        return rest
    advice = URI_FORM
    if scheme in {"http", "clickhouse+http", "clickhousedb", "clickhousedb+connect", "ch", "jdbc", "clickhouse+asynch"}:
        advice = "write clickhouse:// in its place"
    elif scheme in {"https", "clickhouses", "clickhouse+https", "chs"}:
        advice = "write clickhouse:// in its place, and ?secure=true at the end"
    elif scheme in {"tcp", "native", "clickhouse+native"}:
        advice = "write clickhouse:// in its place, and ?protocol=native at the end"
    reason = f"the URI's scheme is {quote(scheme)}, not clickhouse"
    raise problem(reason, advice)


def _raw(char: str) -> InvalidSettingsError:
    return problem(
        f"the URI seems to have a raw {char} in its user or password",
        f"percent-encode it: write %{ord(char):02X} in its place, or give the password in {VARIABLE}PASSWORD",
    )


def _split_host(hostport: str) -> tuple[str, str]:
    no_host = problem("the URI's host is not a host name", f"{URI_FORM}, with an IPv6 address in brackets")
    if hostport.startswith("["):
        host, bracket, after = hostport[1:].partition("]")
        if not bracket or (after and not after.startswith(":")):
            raise no_host
        port = after[1:]
        host = _decode("host", host)
        if not is_ipv6(host):
            raise no_host
    else:
        host, _, port = hostport.partition(":")
        if ":" in port:
            raise problem(
                "the URI's host has more than one colon",
                "put an IPv6 address in brackets, such as [::1]; user and password stand before an @",
            )
        host = _decode("host", host)
        if not is_host_name(host):
            raise no_host
    if port:
        number = int(port) if port.isascii() and port.isdigit() and len(port) < 20 else 0  # noqa: PLR2004
        if not 1 <= number <= 65535:  # noqa: PLR2004
            # Not shown: where the @ was forgotten, this is the password.
            raise problem("the URI's port is not a number from 1 to 65535", URI_FORM)
        port = str(number)
    return lower_host(host), port


def _decode(part: str, text: str) -> str:
    """Undo percent-encoding once; a % that no two hex digits follow stays."""
    if "%" not in text:
        return text
    try:
        return re.sub(_PERCENT, lambda m: bytes([int(m[1], 16)]), text.encode()).decode()
    except UnicodeDecodeError:
        reason = f"the URI's {part} decodes to bytes that are not UTF-8"
        raise problem(reason, "percent-encode its UTF-8 form, and a % as %25") from None


def _split_query(query: str) -> dict[str, str]:
    params: dict[str, str] = {}
    for piece in query.split("&"):
        if not piece:
            continue
        name, equals, text = piece.partition("=")
        server_setting = re.fullmatch(_SERVER_SETTING, name) is not None
        if not server_setting and name not in KINDS:
            # What looks like a parameter may be a piece of the password.
            if "@" in query:
                raise _raw("?")
            if not _SECRET.isdisjoint(params):
                raise problem(
                    "the URI has a parameter that is not known, after one that is secret",
                    "write %26 for an & that belongs to the secret, or correct the name",
                )
            # Not shown where it was not written as a parameter.
            raise _unknown(name if equals else "")
        if "@" in text and not server_setting and name not in _AT_ALLOWED:
            raise _raw("?")
        if not equals:
            reason = f"the URI's parameter {name} has no value"
            raise problem(reason, f"write {name}=value")
        if name in params:
            reason = f"the URI has the parameter {name} twice"
            raise problem(reason, "keep one of them")
        params[name] = text
    return params


_OTHER_NAMES = {
    "username": "user",
    "pass": "password",
    "passwd": "password",
    "pwd": "password",
    "ssl": "secure",
    "tls": "secure",
    "https": "secure",
    "sslmode": "secure",
    "db": "database",
    "dbname": "database",
    "hostname": "host",
    "server": "host",
    "timeout": "connect_timeout",
    "dial_timeout": "connect_timeout",
    "read_timeout": "send_receive_timeout",
    "skip_verify": "verify",
    "token": "access_token",
    "jwt": "access_token",
}


def _unknown(name: str) -> InvalidSettingsError:
    if not re.fullmatch(_NAMED_SAFELY, name):
        return problem(
            "the URI has a parameter that is not known",
            "take the names of the settings, and percent-encode what belongs to user or password",
        )
    reason = f"the URI has a parameter {quote(name)}, which is not known"
    if name in {"lock_timeout_seconds", "lock_retry_seconds"}:
        return problem(reason, f"set state_backend.{name} instead, or MELTANO_STATE_BACKEND_{name.upper()}")
    wanted = name.lower()
    longer = (known for known in KINDS if known.startswith(f"{wanted}_"))
    nearest = _OTHER_NAMES.get(wanted) or next(longer, None) or min(KINDS, key=lambda known: _distance(wanted, known))
    return problem(reason, f"perhaps {nearest} is meant")


def _distance(a: str, b: str) -> int:
    """Levenshtein's."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a):
        diagonal, row[0] = row[0], i + 1
        for j, y in enumerate(b):
            change = diagonal + (x != y)
            diagonal = row[j + 1]
            row[j + 1] = min(change, row[j] + 1, row[j + 1] + 1)
    return row[-1]
