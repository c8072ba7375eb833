"""The program that passes beside one that fails: whoever reads a finding sees on which side of what is told it is right."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from bearing import F32, NOTHING, ONE, call, listed, number, shape

from opera.programs.program import Instance, Program
from opera.triage.conditions.circumstances import Labelled, borne_out
from opera.triage.conditions.deciding import Decided
from opera.triage.shrink import smaller


def test_the_program_most_like_it_that_passes_is_kept():
    """Whoever reads a finding sees at once on which side of what is told it is right."""

    def label(programs: Sequence[Program]) -> list[bool | None]:
        return [number(x) == 2 if isinstance(x, Instance) else None for x in programs]

    program = call(np.ones((2, 3), F32), multiplier=2)
    found = borne_out(label, program, {"Any": ONE}, Decided(("multiplier=2",)))
    beside = found.passing_one
    assert isinstance(beside, Instance) and number(beside) != 2
    assert beside.inputs == program.inputs, "nothing else differs"
    assert borne_out(lambda x: [True] * len(x), program, {"Any": ONE}, NOTHING).passing_one is None


def test_a_program_that_passes_beyond_what_tolerance_hides_is_kept_before_one_that_may_not():
    """A Resize of bfloat16 passes within its tolerance, and one without `exclude_outside` is right."""

    def label(programs: Sequence[Program]) -> list[bool | None]:
        return [
            number(x) == 2 and smaller.leaves(x)[0].dtype == "float32" if isinstance(x, Instance) else None
            for x in programs
        ]

    def clear(x: Program) -> bool:
        return smaller.leaves(x)[0].dtype == "float32"

    program = call(np.ones((2, 3), F32), multiplier=2)
    beside = borne_out(label, program, {"Any": ONE}, Decided(("multiplier=2",)), clear=clear).passing_one
    assert isinstance(beside, Instance) and clear(beside) and number(beside) != 2
    hidden = borne_out(label, program, {"Any": ONE}, Decided(("multiplier=2",)), clear=lambda _: False).passing_one
    assert hidden is not None, "none is better than one that may be so within tolerance"


def test_a_program_that_passes_is_kept_though_it_is_given_by_name_what_the_other_leaves_out():
    """`gelu` of Keras fails with its default, and passes with `approximate=False`, which is an argument more."""

    def label(programs: Sequence[Program]) -> list[bool | None]:
        return [number(x, "exact", 0) == 0 if isinstance(x, Instance) else None for x in programs]

    found = borne_out(label, listed(np.ones((2, 3), F32)), {"Any": {"exact": False}}, NOTHING)
    assert isinstance(found.passing_one, Instance) and found.passing_one.params == {"exact": True}


def test_a_program_that_passes_is_kept_though_it_asks_for_the_first_output_alone():
    """Where all outputs are returned, near programs ask for the first."""

    def label(programs: Sequence[Program]) -> list[bool | None]:
        return [None if not x.outputs and x is not program else shape(x)[-1:] == (3,) for x in programs]

    program = msgspec.structs.replace(listed(np.ones((2, 3), F32)), outputs=())
    assert borne_out(label, program, {"Any": {}}, NOTHING, [Labelled(program, True)]).passing_one is not None


def test_of_programs_that_pass_the_one_that_is_read_with_the_least_effort_is_kept():
    def label(programs: Sequence[Program]) -> list[bool | None]:
        return [number(x, "alpha", 1.0) == 0.0 if isinstance(x, Instance) else None for x in programs]

    found = borne_out(label, call(np.float32([-100.0]), alpha=0.0), {"Any": {"alpha": 1.5}}, Decided(("alpha=0.0",)))
    assert isinstance(found.passing_one, Instance) and len(str(found.passing_one.params.get("alpha", 1.0))) == 3
