"""A real Jupyter server on a folder, as `make lab` starts one, with settings of its own."""

import contextlib
import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

PATIENCE = 60  # seconds to start


@dataclass(frozen=True)
class Server:
    """A running server: where it is, and how to talk to its contents."""

    url: str

    def open(self, path: str) -> dict:
        """What JupyterLab gets when it opens a file as a notebook."""
        return self._ask("GET", f"api/contents/{path}?type=notebook&content=1")["content"]

    def save(self, path: str, notebook: dict) -> None:
        """What JupyterLab sends when the reader saves."""
        self._ask(
            "PUT", f"api/contents/{path}",
            {"type": "notebook", "format": "json", "content": notebook},
        )  # fmt: skip

    def is_up(self) -> bool:
        """Does it answer?"""
        try:
            self._ask("GET", "api/status")
        except (urllib.error.URLError, ConnectionError):
            return False
        return True

    def _ask(self, method: str, path: str, body: dict | None = None) -> dict:
        request = urllib.request.Request(
            self.url + path, json.dumps(body).encode() if body else None,
            {"Authorization": "token t", "Content-Type": "application/json"}, method=method,
        )  # fmt: skip
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return json.load(answer)


@contextlib.contextmanager
def serve(
    folder: Path,
    own: Path,
    module: str = "jupyter_server",
    environment: Mapping[str, str] = os.environ,
) -> Iterator[Server]:
    """Start a server on a folder; `own` is a folder for its settings and logs.

    At the end nothing of it lives, a kernel that does not heed its server included.
    """
    own.mkdir(parents=True)
    names = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "HOME")
    environment = {**environment, **{name: str(own / name) for name in names}}
    command = [
        sys.executable, "-m", module, "--no-browser", "--allow-root", "--ServerApp.port=0",
        "--IdentityProvider.token=t", f"--ServerApp.root_dir={folder}",
    ]  # fmt: skip
    with open(own / "log", "wb") as log:
        process = subprocess.Popen(
            command, stdout=log, stderr=log, env=environment, cwd=folder, stdin=subprocess.DEVNULL
        )
    try:
        yield _wait_for(process, own)
    finally:
        kernels = psutil.Process(process.pid).children(recursive=True)
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for kernel in psutil.wait_procs(kernels, timeout=0)[1]:
            with contextlib.suppress(psutil.NoSuchProcess):
                kernel.kill()


def _wait_for(process: subprocess.Popen, own: Path) -> Server:
    end = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < end:
        for told in (own / "JUPYTER_RUNTIME_DIR").glob("jpserver-*.json"):
            with contextlib.suppress(ValueError):  # half written
                server = Server(f"http://127.0.0.1:{json.loads(told.read_text())['port']}/")
                if server.is_up():
                    return server
        time.sleep(0.1)
    raise AssertionError(f"Jupyter did not start:\n{(own / 'log').read_text()[-2000:]}")
