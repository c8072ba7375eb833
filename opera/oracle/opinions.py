"""What another implementation computed for the same inputs: what a library is asked for, and what screens weigh."""

from __future__ import annotations

import msgspec

from opera.programs.values import Value


class Opinion(msgspec.Struct, frozen=True):
    """What an implementation independent of the expected output computed for the same inputs.

    Attributes:
        name: The implementation (`onnxruntime`, `reference-evaluator`).
        independent: False where it shares code or authors with the expected output (it then has no vote).
        outputs: Its outputs in the manifest's order, or None where it could not run the model.
        error: Why it could not.
        precise: Whether it is the same computation in higher precision: who is nearer to it is right.
        equivalent: Whether it is another library's operator that is declared to compute the same: it has a vote only where it
            agrees with the expected outputs or with the compiler.
        confirming: Whether it is of a program that should mean the same (in a wider dtype): it has a vote only where it agrees
            with the expected outputs, and excuses nobody.
        computes_in: dtype → dtype, where it computes some in a narrower one by design (opera.compilers.Frontend): its outputs
            of such are within the tolerance of that.
    """

    name: str
    independent: bool
    outputs: list[Value] | None
    error: str = ""
    precise: bool = False
    equivalent: bool = False
    confirming: bool = False
    computes_in: dict[str, str] = {}
