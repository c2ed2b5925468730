"""Hosts as requests name them: which are allowed, and the name without its port. No I/O."""

import ipaddress


def host_allowed(host: bytes, allowed: frozenset[bytes]) -> bool:
    """Whether a Host is allowed: addresses are, since DNS rebinding needs a name."""
    name = without_port(host).lower()
    if not host or name in allowed or b"*" in allowed:
        return True
    try:
        ipaddress.ip_address(name.decode("ascii"))
    except ValueError:
        return False
    return True


def without_port(host: bytes) -> bytes:
    """The name or address; malformed hosts unchanged, which match no name."""
    if host.startswith(b"["):
        address, bracket, port = host[1:].partition(b"]")
        ends_well = bracket and (not port or (port[:1] == b":" and port[1:].isdigit()))
        return address if ends_well and b":" in address else host
    name, colon, port = host.rpartition(b":")
    return name if colon and port.isdigit() and b":" not in name else host
