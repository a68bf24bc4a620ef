"""Every test of the suite, unchanged."""

from sqlalchemy.testing.suite import *  # noqa: F403
