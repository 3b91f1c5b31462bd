"""Two hosts on one machine: network namespaces, each with an address of its own, joined by a bridge."""

import os
import shutil
import sys

import pytest
from hosts_common import Host, ip


@pytest.fixture
def two_hosts():
    """Two hosts, and the address of this process in their network."""
    if sys.platform != "linux" or os.geteuid() != 0 or not shutil.which("ip"):
        pytest.skip("network namespaces need Linux, root and the ip command")
    tag, subnet = f"dg{os.getpid() % 100000}", f"10.{77 + os.getpid() % 100}.{os.getpid() // 100 % 250}"
    if ip("link", "add", tag, "type", "bridge", check=False).returncode:
        pytest.skip("this system does not let root make a network bridge")
    hosts = []
    try:
        ip("addr", "add", f"{subnet}.254/24", "dev", tag)
        ip("link", "set", tag, "up")
        try:
            hosts += [Host(f"{tag}{letter}", tag, f"{subnet}.{n}") for n, letter in ((1, "a"), (2, "b"))]
        except AssertionError as error:
            pytest.skip(f"this system does not let root make network namespaces: {error}")
        yield *hosts, f"{subnet}.254"
    finally:
        for host in hosts:
            host.remove()
        ip("link", "del", tag, check=False)
