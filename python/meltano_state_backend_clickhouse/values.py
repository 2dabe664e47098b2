"""The settings that a URI may give, and how their texts are read.

The twin of the Go code (internal/config/value.go and finish.go), texts of errors included.
"""

from __future__ import annotations

import re
import socket
import typing as t

from .errors import InvalidSettingsError, InvalidURIError

if t.TYPE_CHECKING:
    from collections.abc import Callable

SETTING = "state_backend.clickhouse."

# Patterns are compiled when they are used: most of a parse needs few of them,
# and importing this module must cost next to nothing.
_CONTROL = r"[\x00-\x1f\x7f]"
_NO_HOST_NAME = r"""[\x00-\x20\x7f/?#@\[\]\\<>"^{|}%:,;&=+'()*!$`]"""


def problem(reason: str, advice: str, source: str = "") -> InvalidSettingsError:
    """Make the error for a value from `source`, or for the URI as such; the advice belongs to its text."""
    where = f" (from {source})" if source else ""
    kind = InvalidSettingsError if source == "Meltano" else InvalidURIError
    return kind(f"{reason}{where} — {advice}")


def is_ipv6(host: str) -> bool:
    """Tell an IPv6 address, without brackets but perhaps with a zone."""
    address, percent, zone = host.partition("%")
    if percent and not zone:
        return False
    try:
        socket.inet_pton(socket.AF_INET6, address)
    except (OSError, ValueError):
        return False
    return True


def is_host_name(host: str) -> bool:
    """Tell whether a text can be a name or an IPv4 address at all."""
    return not re.search(_NO_HOST_NAME, host)


def has_control(text: str) -> bool:
    """Tell whether a text has a control character in it."""
    return re.search(_CONTROL, text) is not None


def lower_host(host: str) -> str:
    """Write a name in lower case, but not an IPv6 zone, which is an interface's name."""
    name, percent, zone = host.partition("%")
    return lower(name) + percent + zone


def lower(text: str) -> str:
    """Leave other alphabets alone, about which Go and Python differ."""
    return re.sub("[A-Z]+", lambda m: m[0].lower(), text)


def _bad(name: str, text: str, what: str, advice: str, source: str) -> InvalidSettingsError:
    shown = "" if not text or name in {"password", "access_token"} else f"{quote(text)}, "
    return problem(f"{SETTING}{name} is {shown}{what}", advice, source)


def quote(text: str) -> str:
    """Put a value between quotation marks, cut short and on one line."""
    if len(text) > 40:  # noqa: PLR2004
        text = text[:40] + "…"
    return '"' + re.sub(r'[\x00-\x1f\x7f"]', "?", text) + '"'


def _text(name: str, text: str, source: str) -> str:
    if has_control(text) and name not in {"password", "access_token"}:
        raise _bad(name, "", "text with a control character in it", "write it without", source)
    return text


def _path(name: str, text: str, source: str) -> str:
    text = _text(name, text, source)
    try:
        with open(text, "rb"):  # noqa: PTH123
            return text
    except OSError as err:
        reason = f"{SETTING}{name} names {quote(text)}, which cannot be read: {_os_reason(err)}"
        raise problem(reason, "correct the path, or the file's permissions", source) from None


def _os_reason(err: OSError) -> str:
    return (err.strerror or "unknown error").lower()


def _host(name: str, text: str, source: str) -> str:
    host = _text(name, text, source).strip(" \t")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    if not is_ipv6(host) and not (host and is_host_name(host)):
        raise _bad(
            name,
            "",
            "not a host name or address",
            "write the name alone; a port belongs into state_backend.clickhouse.port, "
            "a whole URI into state_backend.uri",
            source,
        )
    return lower_host(host)


def _proxy_path(name: str, text: str, source: str) -> str:
    path = _text(name, text, source).strip("/")
    return f"/{path}" if path else ""


def _switch(name: str, text: str, source: str) -> bool:
    word = lower(text.strip(" \t"))
    if word in {"true", "1", "yes", "on"}:
        return True
    if word in {"false", "0", "no", "off"}:
        return False
    raise _bad(name, text, "neither true nor false", "write true or false", source)


def _choice(*choices: str) -> Callable[[str, str, str], str]:
    def read(name: str, text: str, source: str) -> str:
        word = lower(text.strip(" \t"))
        if word in choices:
            return word
        known = ", ".join(choices[:-1]) + " or " + choices[-1]
        raise _bad(name, text, "not one of its values", f"write {known}", source)

    return read


def _number(kind: str, least: float, most: int, example: str) -> Callable[[str, str, str], t.Any]:
    whole = kind == "a whole number"
    form = r"\+?[0-9]+" if whole else r"\+?([0-9]+(\.[0-9]*)?|\.[0-9]+)"
    advice = f"write {kind} from {least} to {most}, such as {example}"

    def read(name: str, text: str, source: str) -> float:
        digits = text.strip(" \t")
        if not re.fullmatch(form, digits):
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
KINDS: dict[str, Callable[[str, str, str], t.Any]] = {
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
    "lock_strategy": _choice("auto", "table", "keeper", "settle"),
    "lock_settle_seconds": _number(_SECONDS, 0.001, _LONG, "1.0"),
    "lock_wait_seconds": _number(_SECONDS, 0, _LONG, "30"),
    "lock_linger_seconds": _number(_SECONDS, 0, _LONG, "1.0"),
    "history_days": _number(_WHOLE, 0, 36500, "30"),
}

TEXTUAL = {
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


def text_of(name: str, value: object) -> str:
    """Turn what Meltano made of a setting into text, without guessing."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        if name in TEXTUAL:
            raise _bad(name, "", "true or false where text belongs", "put it in quotes", "Meltano")
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, (list, tuple, dict)):
        raise _bad(name, "", "a list or a mapping", "write one value", "Meltano")
    if name in TEXTUAL:
        raise _bad(name, "", "a number where text belongs", "put it in quotes", "Meltano")
    return str(value).removesuffix(".0")


def choose_login(given: dict[str, tuple[str, str, int]], values: dict[str, t.Any]) -> None:
    """Keep the strongest of password, password_file and access_token."""
    best = ""
    for name in ("password", "password_file", "access_token"):
        if name not in given:
            continue
        if not best or given[name][2] > given[best][2]:
            best = name
        elif given[name][2] == given[best][2]:
            reason = f"{SETTING}{name} and {SETTING}{best} are both set"
            raise problem(reason, "keep one of them", given[name][1])
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
        reason = f"{SETTING}password_file names {quote(path)}, {trouble}"
        raise problem(reason, "write the password into it, on one line", source)
    return line.decode(errors="surrogateescape")


def port_and_tls(values: dict[str, t.Any]) -> tuple[int, bool]:
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
