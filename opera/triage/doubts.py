"""Why a finding should not be filed as it stands, as far as that is stored: lists, reports and drafts say the same of it.

What has no doubts is ready: it failed again in a fresh process and on its own, the compiler claims to know the operator, and
where outputs are wrong, someone else confirms the expected ones.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from opera import compilers
from opera.oracle.screens import SINGLE_REFERENCE
from opera.programs.verdicts import NEWER
from opera.triage.blame import Blame
from opera.triage.sentence import READS_AS_REFUSAL


def doubts(tags: Collection[str], confirmed: int, laid: Blame | None, *, alone: bool, agreeing: bool) -> Iterator[str]:
    """Yield what speaks against filing a finding, a clause each.

    Args:
        tags: Of the finding.
        confirmed: How many members, or reductions of them, failed again in a fresh process.
        laid: Which part is wrong, where that was asked.
        alone: Whether a member fails without others before it.
        agreeing: Whether another compiler gives the expected outputs of the same model.
    """
    if not alone:
        yield "no test shows it alone: it fails only after others in the same process"
    if READS_AS_REFUSAL in tags:
        yield "its words read as a refusal: if the documentation does not promise it, this asks for a feature"
    if not confirmed:
        yield "it was not confirmed in a fresh process"
    after = laid is not None and laid.verdict in (compilers.KERNEL, compilers.OPTIMISATION)
    if NEWER in tags and not after:  # what the importer made is right: it knows what the opset means
        yield "the model needs a newer opset than the compiler declares to know: that is a feature not yet there, no bug"
    if SINGLE_REFERENCE in tags and not agreeing:
        yield "no other implementation confirms the expected outputs: check them by hand against the documentation first"
