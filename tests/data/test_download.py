import hashlib
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from teo.data import download
from teo.data.download import MIRROR_VARIABLE, DownloadError, download_dataset, download_file
from teo.data.registry import Dataset, PublishedFile

pytestmark = pytest.mark.process

CONTENT = bytes(range(256)) * 1000
FILE = PublishedFile("sub/corpus.txt", hashlib.sha256(CONTENT).hexdigest(), "https://example.org/corpus.txt")
OTHER = PublishedFile("asked_for.txt", "0" * 64)
DATASET = Dataset("toy", "TOY", "en", "none", "https://example.org", "Nobody", (FILE, OTHER))


class Server(ThreadingHTTPServer):
    """Serves CONTENT on the loopback address, with the faults that a test asks for."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.content = CONTENT
        self.ranges = True
        self.breaks_after: int | None = None
        self.status = 200
        self.says_length = True
        self.requests: list[tuple[str, str | None]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        wanted = self.headers.get("Range")
        self.server.requests.append((self.path, wanted))
        if self.server.status != 200:
            self.send_error(self.server.status)
            return
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and self.server.ranges else 0
        if start >= len(self.server.content):
            self.send_error(416)
            return
        body = self.server.content[start:]
        self.send_response(206 if start else 200)
        if self.server.says_length:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: self.server.breaks_after])

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def server(monkeypatch) -> Iterator[Server]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.delenv(MIRROR_VARIABLE, raising=False)
    one = Server()
    thread = threading.Thread(target=one.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield one
    one.shutdown()
    thread.join()
    one.server_close()


def names(folder) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def test_file_arrives_whole_under_its_name(server, tmp_path):
    seen = []
    path = download_file(FILE, server.url, tmp_path, progress=lambda done, total: seen.append((done, total)))
    assert path == tmp_path / "sub" / "corpus.txt"
    assert path.read_bytes() == CONTENT
    assert names(tmp_path) == ["corpus.txt"]
    assert seen[-1] == (len(CONTENT), len(CONTENT))


def test_file_that_is_there_is_not_fetched_again(server, tmp_path):
    download_file(FILE, server.url, tmp_path)
    download_file(FILE, server.url, tmp_path)
    assert len(server.requests) == 1


def test_other_file_of_that_name_is_left_alone(server, tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / FILE.name).write_text("mine")
    with pytest.raises(DownloadError, match=r"corpus\.txt: a file with other content is there already; move it"):
        download_file(FILE, server.url, tmp_path)
    assert (tmp_path / FILE.name).read_text() == "mine"


def test_broken_connection_keeps_a_part_that_is_resumed(server, tmp_path):
    server.breaks_after = 100_000
    with pytest.raises(DownloadError, match=r"the connection failed \(.*\); to resume, run the command again"):
        download_file(FILE, server.url, tmp_path)
    part = tmp_path / "sub" / "corpus.txt.part"
    assert part.read_bytes() == CONTENT[:100_000]
    server.breaks_after = None
    assert download_file(FILE, server.url, tmp_path).read_bytes() == CONTENT
    assert server.requests[-1][1] == "bytes=100000-", "it went on where it stopped"
    assert names(tmp_path) == ["corpus.txt"]


def test_interruption_keeps_a_part_that_is_resumed(server, tmp_path):
    def interrupt(done: int, total: int | None) -> None:
        if done > 70_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        download_file(FILE, server.url, tmp_path, progress=interrupt)
    [part] = (tmp_path / "sub").iterdir()
    assert part.name == "corpus.txt.part"
    kept = part.stat().st_size
    assert 70_000 < kept < len(CONTENT)
    assert download_file(FILE, server.url, tmp_path).read_bytes() == CONTENT
    assert server.requests[-1][1] == f"bytes={kept}-"


def test_server_without_ranges_sends_all_of_it_again(server, tmp_path):
    server.ranges = False
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "corpus.txt.part").write_bytes(CONTENT[:500])
    assert download_file(FILE, server.url, tmp_path).read_bytes() == CONTENT


def test_part_that_is_whole_already_is_checked_and_taken(server, tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "corpus.txt.part").write_bytes(CONTENT)
    assert download_file(FILE, server.url, tmp_path).read_bytes() == CONTENT
    assert len(server.requests) == 1


def test_server_that_does_not_say_the_length(server, tmp_path):
    server.says_length = False
    assert download_file(FILE, server.url, tmp_path).read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("part", "reason"),
    [(None, "a changed file"), (b"x" * 500, "a part of another file"), (CONTENT * 2, "a part too long")],
)
def test_checksum_mismatch_leaves_nothing(server, tmp_path, part, reason):
    if part is None:
        server.content = b"changed"
    else:
        (tmp_path / "sub").mkdir()
        (tmp_path / "sub" / "corpus.txt.part").write_bytes(part)
    with pytest.raises(DownloadError) as error:
        download_file(FILE, server.url, tmp_path, page="https://example.org")
    assert f"expected a file with SHA-256 {FILE.sha256[:12]}..., found " in str(error.value), reason
    assert str(error.value).endswith("the published file has changed, see https://example.org")
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    ("status", "page", "message"),
    [
        (404, "https://example.org", "the server answered 404 Not Found; it may have moved: see https://example.org"),
        (404, "", "the server answered 404 Not Found; check the address"),
        (416, "", "the server answered 416"),
        (503, "", "the server answered 503 Service Unavailable; check the address"),
    ],
)
def test_server_that_refuses(server, tmp_path, status, page, message):
    server.status = status
    with pytest.raises(DownloadError, match=re.escape(message)) as error:
        download_file(FILE, server.url, tmp_path, page=page)
    assert error.value.exit_code == 1, "not the user's mistake"
    assert names(tmp_path) == []


def test_no_server(server, tmp_path):
    url = server.url
    server.shutdown()
    server.server_close()
    with pytest.raises(DownloadError, match=r"the connection failed \(.*refused.*\); to resume, run the command again"):
        download_file(FILE, url, tmp_path)


def test_dataset_brings_the_files_that_have_an_address(server, tmp_path):
    assert download_dataset(DATASET, tmp_path, base=f"{server.url}/") == [tmp_path / FILE.name]
    assert server.requests == [("/toy/sub/corpus.txt", None)]


def test_published_address_is_the_default(tmp_path, monkeypatch):
    monkeypatch.delenv(MIRROR_VARIABLE, raising=False)
    asked = []

    def record(file, url, folder, *, page):
        asked.append((file.name, url, folder, page))
        return folder / file.name

    monkeypatch.setattr(download, "download_file", record)
    download_dataset(DATASET, tmp_path)
    assert asked == [(FILE.name, "https://example.org/corpus.txt", tmp_path, "https://example.org")]


def test_mirror_of_the_environment(server, tmp_path, monkeypatch):
    monkeypatch.setenv(MIRROR_VARIABLE, server.url)
    assert download_dataset(DATASET, tmp_path) == [tmp_path / FILE.name]


def test_failure_leaves_no_folder_that_it_made(server, tmp_path):
    server.status = 404
    with pytest.raises(DownloadError):
        download_file(FILE, server.url, tmp_path / "new" / "folder")
    assert list(tmp_path.iterdir()) == []
    there = tmp_path / "there"
    there.mkdir()
    with pytest.raises(DownloadError):
        download_file(FILE, server.url, there)
    assert list(tmp_path.rglob("*")) == [there], "a folder of the user's stays"


def test_failure_keeps_the_folder_of_an_unfinished_file(server, tmp_path):
    server.breaks_after = 1000
    with pytest.raises(DownloadError):
        download_file(FILE, server.url, tmp_path / "new")
    assert names(tmp_path) == ["corpus.txt.part"]
