"""Which host names a request may be sent to, and which websites may send one."""

from __future__ import annotations

import ipaddress
import socket
from typing import Any

from treetop.serve.errors import RequestError
from treetop.serve.options import ServiceOptions

READING = ("GET", "HEAD", "OPTIONS")  # methods that change nothing
PORTS = {"http": "80", "https": "443"}


class Hosts:
    """Protects a server from the browsers of people who visit other websites.

    A website can send requests to any address (which `check_origin` refuses), and can let its own
    name point to a private address, so that the browser takes the server for a part of the website
    (which `check` refuses: DNS rebinding).
    """

    def __init__(self, options: ServiceOptions) -> None:
        self.origins = {origin.rstrip("/").lower() for origin in options.allow_origin}
        own = ("localhost", options.host, socket.gethostname())
        self.names = {name.lower().rstrip(".") for name in (*own, *options.allow_host)}
        # A website does not know the token.
        self.any = "*" in options.allow_host or (options.token is not None and not options.allow_host)

    def check(self, scope: Any) -> None:
        """Answer 403 unless the request is for a known name or for an IP address."""
        name = host_name(header(scope, b"host"))
        if self.any or not name or name in self.names or name.endswith(".localhost"):
            return
        if not is_address(name):
            message = f"Host {name} not allowed: the server can allow it with --allow-host {name}"
            raise RequestError(403, "other_host", message)

    def check_origin(self, scope: Any) -> None:
        """Answer 403 to requests that could change something and come from another website."""
        if scope["method"] in READING:
            return
        origin, site = header(scope, b"origin").lower(), header(scope, b"sec-fetch-site")
        # Behind a proxy, Host may differ from the name that the browser knows.
        if origin in self.origins or site == "same-origin":
            return
        host, scheme = header(scope, b"host").lower(), origin.partition("://")[0]
        if host and authority(host, scheme) == authority(origin.partition("://")[2], scheme):
            return
        if origin or site == "cross-site":
            message = "Origin not allowed: the server can allow it with --allow-origin"
            raise RequestError(403, "other_site", message)


def host_name(host: str) -> str:
    """The name or address in a Host header, without port and brackets."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower().rstrip(".")


def authority(host: str, scheme: str) -> str:
    """Host and port, also where the scheme implies the port."""
    return host.removesuffix(":" + PORTS.get(scheme, ""))


def is_address(name: str) -> bool:
    """Whether a host name is an IP address."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def header(scope: Any, name: bytes) -> str:
    """The value of a header, empty if it is missing."""
    return next((value.decode("latin-1") for key, value in scope["headers"] if key == name), "")
