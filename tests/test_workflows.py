"""What runs elsewhere: the workflows of GitHub and the pipeline of GitLab, held to their rules."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from course_build.base.settings import SETTINGS_FILE, parse_settings
from course_build.run.outcome import Limits

ROOT = Path(__file__).resolve().parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.y*ml"))
PROOF, WEEKLY = (ROOT / ".github" / "workflows" / name for name in ("proof.yml", "weekly.yml"))
GITLAB = (ROOT / ".ci" / "gitlab-ci.yml").read_text(encoding="utf-8")
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
PINNED = re.compile(r"^ *(?:- )?uses: [\w-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$")
COMMAND = re.compile(r"(?:make (?P<target>[a-z-]+)|bash \.ci/packages)(?: [\w./=$\"-]+)*")


def faults(text):
    """What is wrong with a workflow, beyond what its schema and zizmor know."""
    workflow = yaml.load(text, yaml.BaseLoader)  # all values are text, and `on` is no boolean
    found = [f"permissions: {workflow.get('permissions')}"] * (
        workflow.get("permissions") != {"contents": "read"}
    )
    if workflow.get("concurrency", {}).get("cancel-in-progress") != "true":
        found.append("an older run of the same branch is not cancelled")
    found += [f"not pinned: {line}" for line in _uses(text) if not PINNED.fullmatch(line)]
    found += [f"what fails must fail: {word}" for word in _words(text)]
    for name, job in workflow["jobs"].items():
        if "permissions" in job:
            found.append(f"{name}: permissions of its own")
        if not job.get("timeout-minutes", "").isdecimal():
            found.append(f"{name}: no timeout")
        for step in job["steps"]:
            found += [f"{name}: {problem}" for problem in _step_faults(step)]
    return found


def _uses(text):
    return [line for line in text.splitlines() if re.search(r"\buses\s*:", line)]


def _words(text):
    return re.findall(r"continue-on-error|\|\| *(?:true|:)|secrets\.|: write\b", text)


def _step_faults(step):
    action = step.get("uses", "").split("@")[0]
    if action == "actions/checkout" and step.get("with", {}).get("persist-credentials") != "false":
        yield "the token stays in the checkout"
    if action == "actions/upload-artifact" and step.get("if") != "always()":
        yield "a failed run leaves nothing to look at"
    if action == "actions/cache":
        yield "executed notebooks are never taken from a cache"
    for line in step.get("run", "").splitlines():
        command = COMMAND.fullmatch(line)
        if not command or (command["target"] or "test") not in TARGETS:
            yield f"not a target of the Makefile: {line}"


def load(path):
    return yaml.load(path.read_text(encoding="utf-8"), yaml.BaseLoader)


def lint(*command):
    """Run a linter; return what it says when it finds something."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode and done.stdout + done.stderr


def tool(name):
    return str(Path(sys.executable).parent / name)


def schema_faults(path, schema):
    check = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}"]
    return lint(*check, str(path))


def zizmor(path):
    return lint(tool("zizmor"), "--offline", "--no-progress", "--persona=pedantic", str(path))


def test_new_versions_are_asked_for_by_a_bot_whose_file_fits_its_schema():
    path = ROOT / ".github" / "dependabot.yml"
    assert not schema_faults(path, "dependabot")
    assert not zizmor(path)
    systems = {update["package-ecosystem"] for update in load(path)["updates"]}
    assert systems == {"pip", "github-actions"}


def test_there_are_workflows():
    assert [PROOF, WEEKLY] == WORKFLOWS


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_keeps_the_rules(path):
    assert faults(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_fits_its_schema(path):
    assert not schema_faults(path, "github-workflows")


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_zizmor_finds_nothing_in_a_workflow(path):
    assert not zizmor(path)


def test_the_notebooks_run_in_the_languages_of_the_course():
    settings = parse_settings((ROOT / SETTINGS_FILE).read_text(encoding="utf-8"))
    jobs = load(PROOF)["jobs"]
    assert jobs["notebooks"]["strategy"]["matrix"]["language"] == list(settings.languages)


def test_every_shard_of_the_notebooks_is_run():
    notebooks = load(PROOF)["jobs"]["notebooks"]
    shards = notebooks["strategy"]["matrix"]["shard"]
    (run,) = (step["run"] for step in notebooks["steps"] if "run" in step)
    assert shards == [str(number) for number in range(1, len(shards) + 1)]
    assert run.endswith(f'SHARD="$SHARD/{len(shards)}"')


def test_both_ends_of_the_declared_versions_are_tried():
    ends = load(PROOF)["jobs"]["compat"]["strategy"]["matrix"]["include"]
    assert [end["versions"] for end in ends] == ["oldest", "newest", "newest"]
    assert len({end["python"] for end in ends}) == 3  # symbol tables changed in 3.12
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["requires-python"] == f">={ends[0]['python']}"


def test_what_changes_without_a_push_is_looked_at_every_week():
    weekly = load(WEEKLY)
    assert re.fullmatch(r"\d+ \d+ \* \* \d", weekly["on"]["schedule"][0]["cron"])
    targets = set()
    for job in weekly["jobs"].values():
        first, *others = [step for step in job["steps"] if "run" in step]
        targets |= {step["run"].split()[1] for step in (first, *others)}
        assert all(step["if"] == "always()" for step in others)  # each tells what it found
    assert targets == {"compat", "audit", "run", "drift", "lite"}


def gitlab_faults(text):
    """What is wrong with GitLab's jobs, beyond what the schema knows."""
    pipeline = yaml.load(text, yaml.BaseLoader)
    jobs = {name: job for name, job in pipeline.items() if "script" in job}
    found = [f"what fails must fail: {word}" for word in re.findall("allow_failure", text)]
    found += ["no timeout"] * ("timeout" not in pipeline["default"])
    found += ["executed notebooks kept in a cache"] * ("build" in str(pipeline["default"]["cache"]))
    for name, job in jobs.items():
        if job.get("artifacts", {}).get("when") != "always":
            found.append(f"{name}: a failed run leaves nothing to look at")
        found += [f"{name}: {fault}" for fault in _step_faults({"run": "\n".join(job["script"])})]
    return found


def test_the_gitlab_pipeline_keeps_the_rules_and_fits_its_schema(tmp_path):
    assert gitlab_faults(GITLAB) == []
    path = tmp_path / ".gitlab-ci.yml"
    path.write_text(GITLAB, encoding="utf-8")
    assert not schema_faults(path, "gitlab-ci")
    path.write_text(GITLAB.replace("script:", "scripts:", 1), encoding="utf-8")
    assert schema_faults(path, "gitlab-ci")


def runs(job):
    return [step["run"] for step in job["steps"] if "run" in step]


def test_the_gitlab_pipeline_runs_what_the_workflow_runs():
    jobs = load(PROOF)["jobs"]
    pipeline = yaml.load(GITLAB, yaml.BaseLoader)
    assert jobs.keys() == {name for name, job in pipeline.items() if "script" in job}
    for name in ("test", "delivery"):
        assert pipeline[name]["parallel"]["matrix"] == [
            {"PYTHON": jobs[name]["strategy"]["matrix"]["python"]}
        ]
        assert pipeline[name]["script"] == runs(jobs[name])
    assert pipeline["thorough"]["script"] == runs(jobs["thorough"])
    matrix = jobs["notebooks"]["strategy"]["matrix"]
    shards = [f"{shard}/{len(matrix['shard'])}" for shard in matrix["shard"]]
    assert pipeline["notebooks"]["parallel"]["matrix"] == [
        {"LANGUAGE": matrix["language"], "SHARD": shards}
    ]
    assert pipeline["compat"]["parallel"]["matrix"] == [
        {name.upper(): value for name, value in end.items()}
        for end in jobs["compat"]["strategy"]["matrix"]["include"]
    ]


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("make site", "python -m course_build.site"),
        ("make site", "make sight"),
        ("when: always", "when: on_success"),
        ("paths: [.pip]", "paths: [.pip, build/cache]"),
        ("interruptible", "allow_failure"),
        ("  timeout: 1 hour\n", ""),
    ],
)
def test_a_fault_planted_in_the_gitlab_pipeline_is_found(right, wrong):
    assert right in GITLAB
    assert len(gitlab_faults(GITLAB.replace(right, wrong, 1))) >= 1


def test_what_contributing_says_of_the_limits_is_so():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = text.split("\n## Running notebooks of strangers\n")[1].split("\n## ")[0]
    limits = Limits()
    for said in (
        f"| {limits.cell} s for a cell, {limits.wall} s for a notebook ",
        f"all that it starts | {limits.memory_mb} MB |",
        f"| processes | {limits.processes} |",
        f"file that it writes | {limits.file_mb} MB |",
        f"print and show | {limits.output_mb} MB |",
    ):
        assert said in section


PLANTED = {  # fault: what stands in the workflow, what is written there instead
    "a moving tag": ("@9c091bb21b7c1c1d1991bb908d89e4e9dddfe3e0 # v7.0.0", "@v7"),
    "a short digest": ("@9c091bb21b7c1c1d1991bb908d89e4e9dddfe3e0", "@9c091bb21b7c"),
    "no version beside the digest": (" # v7.0.0", ""),
    "write permissions": ("contents: read", "contents: write"),
    "all permissions": ("permissions:\n  contents: read\n", ""),
    "more permissions for a job": ("    timeout-", "    permissions: write-all\n    timeout-"),
    "no timeout": ("    timeout-minutes: 40\n", ""),
    "a failure that is none": ("    steps:", "    continue-on-error: true\n    steps:"),
    "a swallowed failure": ("run: make site", "run: make site || true"),
    "a command of its own": ("run: make site", "run: python -m course_build.site"),
    "a target that does not exist": ("run: make site", "run: make sight"),
    "two commands on a line": ("run: make site", "run: make site; curl example.org"),
    "kept credentials": ("persist-credentials: false", "persist-credentials: true"),
    "nothing to look at after a failure": ("        if: always()\n", ""),
    "runs pile up": ("cancel-in-progress: true", "cancel-in-progress: false"),
    "a secret": ("LANGUAGE: ${{", "TOKEN: ${{ secrets.TOKEN }}\n          LANGUAGE: ${{"),
}


@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_is_found(fault):
    text = PROOF.read_text(encoding="utf-8")
    right, wrong = PLANTED[fault]
    assert right in text
    assert len(faults(text.replace(right, wrong, 1))) >= 1


def test_the_schema_and_zizmor_find_planted_faults(tmp_path):
    text = PROOF.read_text(encoding="utf-8")
    path = tmp_path / ".github" / "workflows" / "proof.yml"
    path.parent.mkdir(parents=True)
    path.write_text(text.replace("runs-on", "run-on", 1), encoding="utf-8")
    assert "run-on" in schema_faults(path, "github-workflows")
    injected = text.replace("make site", 'make run LANG="${{ github.head_ref }}"')
    path.write_text(injected, encoding="utf-8")
    assert "template-injection" in zizmor(path)
