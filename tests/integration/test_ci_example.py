"""The GitHub Action of examples/ci: that it is whole, and that its steps do on this machine what they would do there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from opera.triage.known import Known

FOLDER = Path(__file__).parents[2] / "examples" / "ci"
EXPRESSION = re.compile(r"\$\{\{ ([\w.'!= -]+) \}\}")


@pytest.fixture(scope="module")
def action() -> dict[str, Any]:
    return yaml.safe_load((FOLDER / "action.yml").read_text())


def expressions(value: object) -> list[str]:
    """Return what stands in ${{ }}, wherever in a document."""
    if isinstance(value, dict):
        return [x for y in value.values() for x in expressions(y)]
    if isinstance(value, list):
        return [x for y in value for x in expressions(y)]
    return EXPRESSION.findall(value) if isinstance(value, str) else []


def test_the_action_uses_what_it_declares(action):
    inputs = set(action["inputs"])
    used = {x.removeprefix("inputs.") for x in expressions(action) if x.startswith("inputs.")}
    used |= {x for step in action["runs"]["steps"] for x in re.findall(r"inputs\.([\w-]+)", str(step.get("if", "")))}
    assert used == inputs
    for x in action["inputs"].values():
        assert x["description"]
        assert x.get("required") or isinstance(x["default"], str)
    ids = {step.get("id") for step in action["runs"]["steps"]}
    assert {x.split(".")[1] for x in expressions(action) if x.startswith("steps.")} <= ids


def test_steps_are_scripts_of_bash_that_take_inputs_from_the_environment_alone(action):
    """What is written into a script by ${{ }} would run whatever an input says."""
    for step in action["runs"]["steps"]:
        assert step["name"]
        if "run" in step:
            assert step["shell"] == "bash"
            assert not EXPRESSION.search(step["run"])
            subprocess.run(["bash", "-n"], input=step["run"], text=True, check=True)
        else:
            assert re.fullmatch(r"[\w-]+/[\w/-]+@v\d+", step["uses"])


def test_the_workflow_gives_the_action_what_it_takes(action):
    workflow = yaml.safe_load((FOLDER / "nightly.yml").read_text())
    (job,) = workflow["jobs"].values()
    given = job["steps"][-1]["with"]
    required = {name for name, x in action["inputs"].items() if x.get("required")}
    assert required <= set(given) <= set(action["inputs"])
    for row in job["strategy"]["matrix"]["include"]:
        assert {x.removeprefix("matrix.") for x in expressions(given)} == set(row)
    assert workflow["permissions"]["security-events"] == "write"


def runs(action: dict[str, Any], folder: Path, given: dict[str, str], name: str, outputs: dict[str, str]) -> int:
    """Run one step in `folder` as GitHub does; return its exit code. What it says of itself goes into `outputs`."""
    step = next(x for x in action["runs"]["steps"] if x["name"] == name)
    values = {f"inputs.{key}": given.get(key, x.get("default", "")) for key, x in action["inputs"].items()} | outputs
    own = {key: EXPRESSION.sub(lambda x: values[x[1]], value) for key, value in step.get("env", {}).items()}
    files = {key: folder / f".{key.lower()}" for key in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    files["GITHUB_OUTPUT"].write_text("")
    environment = {**os.environ, **own, **{key: str(path) for key, path in files.items()}}
    script = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    done = subprocess.run(script, cwd=folder, env=environment, text=True, check=False)
    for line in files["GITHUB_OUTPUT"].read_text().splitlines():
        key, _, value = line.partition("=")
        outputs[f"steps.{step.get('id')}.outputs.{key}"] = value
    return done.returncode


@pytest.mark.full
def test_its_steps_run_and_fail_on_new_findings_alone(action, tmp_path):
    """OpenVINO as release and as nightly: what the one shows the other shows, and is known. All steps but installing."""
    for kind in ("release", "nightly"):
        programs = tmp_path / ".opera" / kind / "bin"
        programs.mkdir(parents=True)
        for name, command in (("python", ""), ("opera", "-m opera.cli")):
            (programs / name).write_text(f'#!/bin/sh\nexec {sys.executable} {command} "$@"\n')
            (programs / name).chmod(0o755)
    given = {"compiler": "openvino", "limit": "60", "workers": "2", "baseline-budget": "4m", "time-budget": "4m"}
    outputs: dict[str, str] = {}
    for name in ("Versions", "Release", "Nightly", "Reports", "Conclusion"):
        assert runs(action, tmp_path, given, name, outputs) == 0, name
    assert outputs["steps.nightly.outputs.new"] == "false"
    assert re.fullmatch(r"[0-9a-f]{16}", outputs["steps.versions.outputs.key"])
    known = Known.load(tmp_path / ".opera" / "known.toml").entries
    for name in ("junit.xml", "opera.sarif", "report.html"):
        assert (tmp_path / ".opera" / name).stat().st_size > 1000
    # A finding that is said to be fixed in the release is back: red. The tests of the release are not run again.
    assert known, "none of these tests fails: choose others"
    (tmp_path / "known.toml").write_text(
        f'[[known]]\nfindings = ["{known[0].findings[0]}"]\nstatus = "fixed"\nfixed_in = "1.0"\nissue = "https://x/1"\n'
    )
    for name, code in (("Nightly", 0), ("Reports", 0), ("Conclusion", 1)):
        assert runs(action, tmp_path, given, name, outputs) == code, name
    assert outputs["steps.nightly.outputs.new"] == "true"
    assert "back, fixed in 1.0" in (tmp_path / ".opera" / "report.html").read_text()
    assert "back, fixed in 1.0" in (tmp_path / ".github_step_summary").read_text()
