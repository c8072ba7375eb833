from __future__ import annotations

import pytest
from filled import fill

from opera.report.summary import Report, summarise


@pytest.fixture
def environments(workspace):
    """Name → id of the environments that `fill` puts into `workspace`."""
    return fill(workspace)


@pytest.fixture
def report(workspace, environments) -> Report:
    return summarise(workspace)
