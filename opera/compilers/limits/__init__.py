"""What a compiler documents that it does not do: a finding of that is answered with the sentence.

The rows are data, a file a compiler (docs/refusals.md, Documented limits).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from pathlib import Path

import msgspec
import numpy as np

from opera.programs.program import Program
from opera.programs.values import RandomTensor, Tensor, Value
from opera.programs.verdicts import Outcome

FOLDER = Path(__file__).parent


class Limit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A documented limit; what a row does not name it does not ask for.

    Attributes:
        says: The sentence; `means`: what follows of it for such a program.
        source: Its address; `issues` are threads in which it was the answer (`owner/name#1`).
        verdicts, symptoms: Of the failures that it explains.
        dtypes: Of which a tensor of the program is; `beyond`: a dtype whose range a finite number of these exceeds, or the one
            that is expected, or whose largest number is returned for an infinity.
        operators: Regular expression for the whole name of one of the program's.
        words: Regular expression searched in what is said, in what it contradicts, or in the law that draws break.
        fed: Kinds of values (`Sequence`), one of which fails since it is the model's own input, and no other call's result.
        params: Parameters, one of which is given, and is neither 0, false nor empty.
        off: Parameters, none of which is given as false.
    """

    says: str
    means: str
    source: str
    issues: tuple[str, ...] = ()
    verdicts: tuple[str, ...] = ()
    symptoms: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    beyond: str = ""
    operators: str = ""
    words: str = ""
    fed: tuple[str, ...] = ()
    params: tuple[str, ...] = ()
    off: tuple[str, ...] = ()

    def holds(
        self,
        operators: Collection[str],
        tensors: Iterable[Tensor | RandomTensor],
        outcome: Outcome,
        fed: Iterable[Value] = (),
        given: Mapping[str, Value] | None = None,
    ) -> bool:
        """Whether a program of these operators and tensors meets it that fails so.

        Args:
            fed: Its inputs of which it is known that they fail as that alone.
            given: Its parameters.
        """
        held = given or {}
        if (self.params and not any(map(held.get, self.params))) or any(held.get(x) is False for x in self.off):
            return False
        if self.fed and not any(type(x).__name__ in self.fed for x in fed):
            return False
        shows = outcome.verdict in (self.verdicts or (outcome.verdict,))
        if not shows or outcome.symptom not in (self.symptoms or (outcome.symptom,)):
            return False
        said = (outcome.message, *(str(outcome.details.get(x, "")) for x in ("claimed", "why")))
        if not re.search(self.words, "\n".join(said)):
            return False
        if self.operators and not any(re.fullmatch(self.operators, x) for x in operators):
            return False
        meant = [x for x in tensors if x.dtype in self.dtypes]
        seen = outcome.details.get("expected"), outcome.details.get("actual")
        return not self.dtypes or (bool(meant) and (not self.beyond or self._exceeds(meant, *seen)))

    def _exceeds(self, meant: Iterable[Tensor | RandomTensor], expected: object, actual: object) -> bool:
        whole = "int" in self.beyond
        info = np.iinfo(self.beyond) if whole else np.finfo(self.beyond)
        numbers = [
            y for x in meant for y in ((x.low, x.high) if isinstance(x, RandomTensor) else x.array().ravel().tolist())
        ]
        numbers += [expected] if type(expected) is (int if whole else float) else []
        if str(expected) in ("inf", "-inf") and isinstance(actual, float) and abs(actual) == float(info.max):
            return True  # an infinity of its own is no number that it has
        return any(abs(x) != np.inf and not int(info.min) <= x <= int(info.max) for x in numbers if x == x)

    @property
    def told(self) -> str:
        """What follows, by which sentence, where it stands, and where it was the answer."""
        answers = f"; see {', '.join(self.issues)}" if self.issues else ""
        return f'{self.means}: "{self.says}" ({self.source}{answers})'


def met(
    compiler: str,
    program: Program,
    tensors: Collection[Tensor | RandomTensor],
    outcome: Outcome,
    fed: Collection[Value] = (),
) -> Limit | None:
    """Return the documented limit of a compiler that a program of these tensors meets which fails so, or None."""
    given = {name: value for call in program.instances() for name, value in call.params.items()}
    return next((x for x in limits(compiler) if x.holds(program.operators, tensors, outcome, fed, given)), None)


@cache
def limits(compiler: str) -> tuple[Limit, ...]:
    """Return the documented limits of a compiler. Raises msgspec.ValidationError where its file holds something else."""
    path = FOLDER / f"{compiler}.toml"
    rows = tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return msgspec.convert(rows.get("limit", []), tuple[Limit, ...])
