"""Every test of a fault is watched for what it leaves behind."""

import pytest

from .leftovers import nothing_left


@pytest.fixture
def clean_room():
    """Fail the test if it leaves a process, a thread, an open file or a temporary path."""
    with nothing_left() as folder:
        yield folder
