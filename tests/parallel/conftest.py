"""Lightning Fabric writes into the environment what it reads from SLURM: no test passes that on to the next."""

import os
from unittest.mock import patch

import pytest


@pytest.fixture(autouse=True)
def restore_environment():
    with patch.dict(os.environ):
        yield
