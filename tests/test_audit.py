"""The audit: what it asks about, what it makes of the answers, and that silence is no answer."""

import importlib.metadata
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from course_build.environment import audit
from course_build.environment.audit import AuditError, ask, installed, judge, known

BAD = {
    "id": "PYSEC-1-1",
    "summary": "bad",
    "details": "very bad",
    "aliases": ["CVE-1-1"],
    "modified": "2026-01-01T00:00:00Z",
    "affected": [
        {
            "package": {"name": "spam", "ecosystem": "PyPI"},
            "ranges": [
                {"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "2.1"}]},
            ],
        }
    ],
}
KNOWN = {"PYSEC-1-1": "spam 2.0: PYSEC-1-1 (CVE-1-1); fixed: 2.1"}


@pytest.fixture
def service():
    """Somebody on this machine who answers as OSV does; gives the options that ask there."""
    asked = []

    class Answer(BaseHTTPRequestHandler):
        def do_POST(self):
            question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append((question["package"]["name"], question["version"]))
            bad = question["package"]["name"] == "spam"
            body = json.dumps({"vulns": [BAD]} if bad else {}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    url = f"http://127.0.0.1:{server.server_address[1]}/v1/query"
    yield ["--vulnerability-service", "osv", "--osv-url", url], asked
    server.shutdown()
    thread.join()
    server.server_close()


def test_all_that_is_installed_is_asked_about_by_its_public_version():
    packages = installed()
    assert {"torch", "papermill", "pip-audit", "tornado", "jinja2"} <= packages.keys()
    version = importlib.metadata.version("torch")
    assert packages["torch"] == version.partition("+")[0]


def test_pip_audit_asks_about_each_package_and_its_answer_is_read(service):
    options, asked = service
    packages = {"spam": "2.0", "eggs": "1.0"}
    assert known(packages, ask(packages, options)) == KNOWN
    assert sorted(asked) == [("eggs", "1.0"), ("spam", "2.0")]


def test_a_service_that_is_not_there_is_no_clean_bill(service, monkeypatch, capsys):
    options, _ = service
    nobody = ["--service", "osv", "--osv-url", "http://127.0.0.1:9/v1/query"]
    monkeypatch.setattr(audit, "installed", lambda: {"eggs": "1.0"})
    assert audit.main(nobody) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("[course] the audit did not happen: ")


def test_a_package_without_an_answer_is_no_clean_bill():
    answer = {"dependencies": [{"name": "eggs", "skip_reason": "not found"}]}
    with pytest.raises(AuditError, match="no answer about 1 of 1 packages .eggs."):
        known({"eggs": "1.0"}, answer)
    with pytest.raises(AuditError, match="no answer about 1 of 1 packages .eggs."):
        known({"eggs": "1.0"}, {"dependencies": []})


def test_without_a_fix_that_is_said():
    advisory = {"id": "X-1", "fix_versions": [], "aliases": []}
    entry = {"name": "eggs", "version": "1.0", "vulns": [advisory]}
    assert known({"eggs": "1.0"}, {"dependencies": [entry]}) == {
        "X-1": "eggs 1.0: X-1; fixed: nothing yet"
    }


def test_only_what_is_known_can_be_accepted():
    assert judge(KNOWN, {}) == list(KNOWN.values())
    assert judge(KNOWN, {"PYSEC-1-1": "never reached"}) == []
    assert judge({}, {"PYSEC-1-1": "gone"}) == [
        "PYSEC-1-1 is accepted but not known here; remove it"
    ]


def test_the_exit_code_says_whether_there_is_work(service, monkeypatch, capsys):
    options, _ = service
    options = ["--service", "osv", *options[2:]]
    monkeypatch.setattr(audit, "installed", lambda: {"spam": "2.0", "eggs": "1.0"})
    assert audit.main(options) == 1
    assert capsys.readouterr().out == (
        "spam 2.0: PYSEC-1-1 (CVE-1-1); fixed: 2.1\n[course] asked osv about 2 packages; 1 to do\n"
    )
    monkeypatch.setattr(audit, "ACCEPTED", {"PYSEC-1-1": "never reached"})
    assert audit.main(options) == 0


def test_a_pip_audit_that_is_not_there_says_so(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(AuditError, match="ended without a word"):
        ask({"eggs": "1.0"}, [])
