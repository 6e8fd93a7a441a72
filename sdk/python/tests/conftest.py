from __future__ import annotations

from collections.abc import Iterator

import pytest

from hosting import Hosted


@pytest.fixture
def host() -> Iterator[Hosted]:
    with Hosted() as hosted:
        yield hosted


@pytest.fixture
def bare() -> Iterator[Hosted]:
    """A host without any installed package."""
    with Hosted(bare=True) as hosted:
        yield hosted
