from __future__ import annotations

import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

from opera import resources
from opera.triage.reproducers import replay, scripts


@given(
    st.integers(1, 60).flatmap(lambda n: st.tuples(st.just(n), st.sets(st.integers(0, n - 1), min_size=1, max_size=3)))
)
def test_reduction_keeps_what_is_needed_and_nothing_else(case):
    count, needed = case
    before = tuple(str(n) for n in range(count))
    wanted = {str(n) for n in needed}
    assert set(replay.reduce(before, lambda part: wanted <= set(part))) == wanted


def test_reduction_ends_in_time():
    before = tuple(map(str, range(1000)))
    assert replay.reduce(before, lambda part: True, seconds=0.0) == before


def test_an_accident_of_a_script_is_not_taken_for_the_failure(tmp_path):
    for code, shown in (
        ("raise SystemExit(1)", False),
        ("1 +", False),
        ("print('the failure is there'); exit(1)", True),
    ):
        path = tmp_path / "script.py"
        path.write_text(code)
        assert scripts.verify(path, "F").shown is shown


def test_an_error_of_a_script_itself_cannot_tell(tmp_path):
    text = (resources.content("templates") / "state_dependent.py.j2").read_text()
    hook = text[text.index("import os") : text.index("try:")]
    done = subprocess.run([sys.executable, "-c", hook + "\nraise KeyError(1)"], capture_output=True, check=False)
    assert done.returncode == scripts.CANNOT_RUN
    assert b"KeyError" in done.stderr
