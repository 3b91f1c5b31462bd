"""A host that is a network namespace, and waiting for what happens on it."""

import errno
import os
import subprocess
import sys
import time
from contextlib import suppress


def ip(*words, check=True):
    done = subprocess.run(["ip", *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0 or not check, done.stderr
    return done


class Host:
    """A network namespace: its processes see nothing of the network but the bridge."""

    def __init__(self, name, bridge, address):
        self.name, self.address, self.wire = name, address, f"{name}w"
        ip("netns", "add", name)
        ip("link", "add", self.wire, "type", "veth", "peer", "name", "eth0", "netns", name)
        ip("link", "set", self.wire, "master", bridge, "up")
        ip("-n", name, "link", "set", "lo", "up")
        ip("-n", name, "addr", "add", f"{address}/24", "dev", "eth0")
        ip("-n", name, "link", "set", "eth0", "up")

    def start(self, *command, folder, **environment):
        """Start a command on this host; its output goes to files in `folder`, since it may outlive the test."""
        variables = {**os.environ, "GLOO_SOCKET_IFNAME": "eth0", "OMP_NUM_THREADS": "1", **environment}
        log = open(folder / f"{self.name}.log", "a+")  # noqa: SIM115 (closed with the process)
        words = ["ip", "netns", "exec", self.name, *map(str, command)]
        return subprocess.Popen(words, stdout=log, stderr=log, text=True, env=variables, start_new_session=True)

    def said(self, folder):
        return (folder / f"{self.name}.log").read_text()

    def cut_off(self):
        ip("link", "set", self.wire, "down")

    def reconnect(self, other):
        """Back on the network, and not before `other` can be reached again."""
        ip("link", "set", self.wire, "up")
        ask = "import socket, sys; s = socket.socket(); s.settimeout(1); print(s.connect_ex((sys.argv[1], 9)))"
        words = ["ip", "netns", "exec", self.name, sys.executable, "-c", ask, other.address]
        deadline = time.monotonic() + 60
        while subprocess.run(words, capture_output=True, text=True).stdout.strip() != str(errno.ECONNREFUSED):
            assert time.monotonic() < deadline, f"{self.name} does not reach {other.name} again"

    def kill_all(self):
        for number in ip("netns", "pids", self.name, check=False).stdout.split():
            with suppress(ProcessLookupError):
                os.kill(int(number), 9)

    def remove(self):
        self.kill_all()
        ip("link", "del", self.wire, check=False)
        ip("netns", "del", self.name, check=False)


def wait_for(what, process, host, folder, seconds=180):
    deadline = time.monotonic() + seconds
    while not what():
        assert process.poll() is None, host.said(folder)[-3000:]
        assert time.monotonic() < deadline, host.said(folder)[-3000:]
        time.sleep(0.05)
