"""Read a state backend URI: the twin of the Go parser (internal/config/uri.go).

Both are held to the same corpus (internal/config/testdata/uri_corpus.json), which
says for each URI what must come out, the texts of errors included.
"""

from __future__ import annotations

import re
import socket
import typing as t

from .errors import InvalidSettingsError, InvalidURIError, MissingSettingsError

if t.TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["connection_params", "connection_params_from_uri", "table_names"]

URI_FORM = "write clickhouse://user:password@host:8123/database"
SETTING = "state_backend.clickhouse."
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
        if name in _KINDS and value is not None and value != "":
            given[name] = (_text_of(name, value), "Meltano", 2)

    values = {}
    for name, read in _KINDS.items():
        if name in given:
            text, source, _ = given[name]
            values[name] = read(name, text, source)
    _choose_login(given, values)
    port, secure = _port_and_tls(values)
    for name in ("user", "database"):
        if name not in values and not (name == "user" and "access_token" in values):
            reason = (
                f"{SETTING}{name} is required and not set — {URI_FORM} "
                f"in the URI, or set {VARIABLE}{name.upper()}"
            )
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
        _text_of(name, settings[name]) if settings.get(name) else parsed.get(name, (default, ""))[0]
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


def _error(reason: str, advice: str, source: str = "") -> InvalidSettingsError:
    where = f" (from {source})" if source else ""
    kind = InvalidSettingsError if source == "Meltano" else InvalidURIError
    return kind(f"{reason}{where} — {advice}")


# --- The URI -----------------------------------------------------------------

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*")
_SERVER_SETTING = re.compile(r"ch_[A-Za-z_][A-Za-z0-9_]*")
_NAMED_SAFELY = re.compile(r"[A-Za-z0-9_.-]{1,40}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_NO_HOST_NAME = re.compile(r"""[\x00-\x20\x7f/?#@\[\]\\<>"^{|}%:,;&=+'()*!$`]""")
_PERCENT = re.compile(rb"%([0-9A-Fa-f]{2})")
_SECRET = {"password", "access_token", "http_proxy"}
_AT_ALLOWED = ("user", "password", "access_token", "http_proxy")


def _parse(uri: str) -> tuple[dict[str, tuple[str, str]], dict[str, str]]:
    """Give the settings in a URI with their source, and the server settings."""
    uri = uri.strip(" \t\r\n")
    try:
        uri.encode()
    except UnicodeEncodeError:
        raise _error("the URI is not UTF-8", "percent-encode the UTF-8 form of what is not ASCII") from None
    if _CONTROL.search(uri):
        raise _error("the URI has a control character in it", "remove it, or percent-encode it")
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
        raise _error("the URI's path is more than a database", URI_FORM)
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
    scheme = _lower(scheme)
    if not separator or not _SCHEME.fullmatch(scheme):
        raise _error("the URI does not begin with clickhouse://", URI_FORM)
    if scheme == "clickhouse":
        return rest
    advice = URI_FORM
    if scheme in {"http", "clickhouse+http", "clickhousedb", "clickhousedb+connect", "ch", "jdbc", "clickhouse+asynch"}:
        advice = "write clickhouse:// in its place"
    elif scheme in {"https", "clickhouses", "clickhouse+https", "chs"}:
        advice = "write clickhouse:// in its place, and ?secure=true at the end"
    elif scheme in {"tcp", "native", "clickhouse+native"}:
        advice = "write clickhouse:// in its place, and ?protocol=native at the end"
    raise _error(f"the URI's scheme is {_quote(scheme)}, not clickhouse", advice)


def _raw(char: str) -> InvalidSettingsError:
    return _error(
        f"the URI seems to have a raw {char} in its user or password",
        f"percent-encode it: write %{ord(char):02X} in its place, or give the password in {VARIABLE}PASSWORD",
    )


def _split_host(hostport: str) -> tuple[str, str]:
    no_host = _error("the URI's host is not a host name", f"{URI_FORM}, with an IPv6 address in brackets")
    if hostport.startswith("["):
        host, bracket, after = hostport[1:].partition("]")
        if not bracket or (after and not after.startswith(":")):
            raise no_host
        port = after[1:]
        host = _decode("host", host)
        if not _is_ipv6(host):
            raise no_host
    else:
        host, _, port = hostport.partition(":")
        if ":" in port:
            raise _error(
                "the URI's host has more than one colon",
                "put an IPv6 address in brackets, such as [::1]; user and password stand before an @",
            )
        host = _decode("host", host)
        if _NO_HOST_NAME.search(host):
            raise no_host
    if port:
        number = int(port) if port.isascii() and port.isdigit() and len(port) < 20 else 0  # noqa: PLR2004
        if not 1 <= number <= 65535:  # noqa: PLR2004
            # Not shown: where the @ was forgotten, this is the password.
            raise _error("the URI's port is not a number from 1 to 65535", URI_FORM)
        port = str(number)
    return _lower_host(host), port


def _is_ipv6(host: str) -> bool:
    address, percent, zone = host.partition("%")
    if percent and not zone:
        return False
    try:
        socket.inet_pton(socket.AF_INET6, address)
    except (OSError, ValueError):
        return False
    return True


def _lower_host(host: str) -> str:
    name, percent, zone = host.partition("%")
    return _lower(name) + percent + zone


def _lower(text: str) -> str:
    """Leave other alphabets alone, about which Go and Python differ."""
    return re.sub("[A-Z]+", lambda m: m[0].lower(), text)


def _decode(part: str, text: str) -> str:
    """Undo percent-encoding once; a % that no two hex digits follow stays."""
    if "%" not in text:
        return text
    try:
        return _PERCENT.sub(lambda m: bytes([int(m[1], 16)]), text.encode()).decode()
    except UnicodeDecodeError:
        raise _error(
            f"the URI's {part} decodes to bytes that are not UTF-8",
            "percent-encode its UTF-8 form, and a % as %25",
        ) from None


def _split_query(query: str) -> dict[str, str]:
    params: dict[str, str] = {}
    for piece in query.split("&"):
        if not piece:
            continue
        name, equals, text = piece.partition("=")
        server_setting = _SERVER_SETTING.fullmatch(name) is not None
        if not server_setting and name not in _KINDS:
            # What looks like a parameter may be a piece of the password.
            if "@" in query:
                raise _raw("?")
            if not _SECRET.isdisjoint(params):
                raise _error(
                    "the URI has a parameter that is not known, after one that is secret",
                    "write %26 for an & that belongs to the secret, or correct the name",
                )
            # Not shown where it was not written as a parameter.
            raise _unknown(name if equals else "")
        if "@" in text and not server_setting and name not in _AT_ALLOWED:
            raise _raw("?")
        if not equals:
            raise _error(f"the URI's parameter {name} has no value", f"write {name}=value")
        if name in params:
            raise _error(f"the URI has the parameter {name} twice", "keep one of them")
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
    if not _NAMED_SAFELY.fullmatch(name):
        return _error(
            "the URI has a parameter that is not known",
            "take the names of the settings, and percent-encode what belongs to user or password",
        )
    reason = f"the URI has a parameter {_quote(name)}, which is not known"
    if name in {"lock_timeout_seconds", "lock_retry_seconds"}:
        return _error(reason, f"set state_backend.{name} instead, or MELTANO_STATE_BACKEND_{name.upper()}")
    wanted = name.lower()
    longer = (known for known in _KINDS if known.startswith(f"{wanted}_"))
    nearest = (
        _OTHER_NAMES.get(wanted)
        or next(longer, None)
        or min(_KINDS, key=lambda known: _distance(wanted, known))
    )
    return _error(reason, f"did you mean {nearest}?")


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


# --- Values ------------------------------------------------------------------


def _bad(name: str, text: str, what: str, advice: str, source: str) -> InvalidSettingsError:
    shown = "" if not text or name in {"password", "access_token"} else f"{_quote(text)}, "
    return _error(f"{SETTING}{name} is {shown}{what}", advice, source)


def _quote(text: str) -> str:
    if len(text) > 40:  # noqa: PLR2004
        text = text[:40] + "…"
    return '"' + re.sub(r'[\x00-\x1f\x7f"]', "?", text) + '"'


def _text(name: str, text: str, source: str) -> str:
    if _CONTROL.search(text) and name not in {"password", "access_token"}:
        raise _bad(name, "", "text with a control character in it", "write it without", source)
    return text


def _path(name: str, text: str, source: str) -> str:
    text = _text(name, text, source)
    try:
        with open(text, "rb"):  # noqa: PTH123
            return text
    except OSError as err:
        reason = f"{SETTING}{name} names {_quote(text)}, which cannot be read: {_os_reason(err)}"
        raise _error(reason, "correct the path, or the file's permissions", source) from None


def _os_reason(err: OSError) -> str:
    return (err.strerror or "unknown error").lower()


def _host(name: str, text: str, source: str) -> str:
    host = _text(name, text, source).strip(" \t")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    if not _is_ipv6(host) and (not host or _NO_HOST_NAME.search(host)):
        raise _bad(
            name,
            "",
            "not a host name or address",
            "write the name alone; a port belongs into state_backend.clickhouse.port, "
            "a whole URI into state_backend.uri",
            source,
        )
    return _lower_host(host)


def _proxy_path(name: str, text: str, source: str) -> str:
    path = _text(name, text, source).strip("/")
    return f"/{path}" if path else ""


def _switch(name: str, text: str, source: str) -> bool:
    word = _lower(text.strip(" \t"))
    if word in {"true", "1", "yes", "on"}:
        return True
    if word in {"false", "0", "no", "off"}:
        return False
    raise _bad(name, text, "neither true nor false", "write true or false", source)


def _choice(*choices: str) -> Callable[[str, str, str], str]:
    def read(name: str, text: str, source: str) -> str:
        word = _lower(text.strip(" \t"))
        if word in choices:
            return word
        known = ", ".join(choices[:-1]) + " or " + choices[-1]
        later = name == "lock_strategy" and word == "keeper"
        what = "not in this version" if later else "not one of its values"
        raise _bad(name, text, what, f"write {known}", source)

    return read


def _number(kind: str, least: float, most: int, example: str) -> Callable[[str, str, str], t.Any]:
    whole = kind == "a whole number"
    form = re.compile(r"\+?[0-9]+" if whole else r"\+?([0-9]+(\.[0-9]*)?|\.[0-9]+)")
    advice = f"write {kind} from {least} to {most}, such as {example}"

    def read(name: str, text: str, source: str) -> float:
        digits = text.strip(" \t")
        if not form.fullmatch(digits):
            raise _bad(name, text, f"not {kind}", advice, source)
        number = float(digits)
        if not least <= number <= most:
            raise _bad(name, text, "out of range", advice, source)
        return int(number) if whole else number

    return read


_WHOLE, _SECONDS = "a whole number", "a number of seconds"
_LONG = 100_000_000

# Every setting that a URI may give, and how its text is read, in the order of the
# documentation. A test compares with the Go table.
_KINDS: dict[str, Callable[[str, str, str], t.Any]] = {
    "host": _host,
    "port": _number(_WHOLE, 1, 65535, "8123"),
    "database": _text,
    "user": _text,
    "password": _text,
    "secure": _switch,
    "schema": _text,
    "table": _text,
    "protocol": _choice("http", "native"),
    "create_tables": _choice("auto", "never"),
    "async_insert": _switch,
    "password_file": _path,
    "access_token": _text,
    "verify": _switch,
    "ca_cert": _path,
    "client_cert": _path,
    "client_cert_key": _path,
    "server_host_name": _text,
    "proxy_path": _proxy_path,
    "http_proxy": _text,
    "connect_timeout": _number(_WHOLE, 1, _LONG, "10"),
    "send_receive_timeout": _number(_WHOLE, 1, _LONG, "300"),
    "cluster": _text,
    "engine": _text,
    "lock_strategy": _choice("auto", "table", "settle"),
    "lock_settle_seconds": _number(_SECONDS, 0.001, _LONG, "1.0"),
    "lock_wait_seconds": _number(_SECONDS, 0, _LONG, "30"),
    "lock_linger_seconds": _number(_SECONDS, 0, _LONG, "1.0"),
    "history_days": _number(_WHOLE, 0, 36500, "30"),
}

_TEXTUAL = {
    "host",
    "database",
    "user",
    "password",
    "schema",
    "table",
    "password_file",
    "access_token",
    "ca_cert",
    "client_cert",
    "client_cert_key",
    "server_host_name",
    "proxy_path",
    "http_proxy",
    "cluster",
    "engine",
}


def _text_of(name: str, value: object) -> str:
    """Turn what Meltano made of a setting into text, without guessing."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        if name in _TEXTUAL:
            raise _bad(name, "", "true or false where text belongs", "put it in quotes", "Meltano")
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, (list, tuple, dict)):
        raise _bad(name, "", "a list or a mapping", "write one value", "Meltano")
    if name in _TEXTUAL:
        raise _bad(name, "", "a number where text belongs", "put it in quotes", "Meltano")
    return str(value)


def _choose_login(given: dict[str, tuple[str, str, int]], values: dict[str, t.Any]) -> None:
    """Keep the strongest of password, password_file and access_token."""
    best = ""
    for name in ("password", "password_file", "access_token"):
        if name not in given:
            continue
        if not best or given[name][2] > given[best][2]:
            best = name
        elif given[name][2] == given[best][2]:
            raise _error(f"{SETTING}{name} and {SETTING}{best} are both set", "keep one of them", given[name][1])
    for name in ("password", "password_file", "access_token"):
        if name != best:
            values.pop(name, None)
    if best == "password_file":
        values["password"] = _read_password(given[best][0], given[best][1])


def _read_password(path: str, source: str) -> str:
    longest = 64 << 10
    trouble = ""
    content = b""
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            content = file.read(longest + 1)
    except OSError as err:
        trouble = f"which cannot be read: {_os_reason(err)}"
    line = content.removesuffix(b"\n").removesuffix(b"\r")
    if not trouble:
        if len(content) > longest:
            trouble = "which is too long for a password"
        elif not line:
            trouble = "which is empty"
        elif b"\n" in line or b"\r" in line:
            trouble = "which has more than one line"
    if trouble:
        reason = f"{SETTING}password_file names {_quote(path)}, {trouble}"
        raise _error(reason, "write the password into it, on one line", source)
    return line.decode(errors="surrogateescape")


def _port_and_tls(values: dict[str, t.Any]) -> tuple[int, bool]:
    """Decide on the port and TLS, each of which follows from the other.

    The client talks HTTP only: with protocol native, whose port is another, it
    gets the usual port of the HTTP interface.
    """
    port: int | None = values.get("port")
    native = values.get("protocol") == "native"
    secure = values.get("secure")
    if secure is None:
        cloud = values.get("host", "").removesuffix(".").endswith(".clickhouse.cloud")
        secure = port in {443, 8443} or (native and port == 9440) or cloud  # noqa: PLR2004
    if port is None or native:
        port = 8443 if secure else 8123
    return port, secure
