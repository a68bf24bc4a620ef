"""SQLAlchemy's dialect suite: its pytest plugin does the work, `--dburi` says where the server is."""

import pytest

pytest.register_assert_rewrite("sqlalchemy.testing.assertions")

from sqlalchemy.testing.plugin.pytestplugin import *  # noqa: E402, F403

from sqlalchemy.dialects.postgresql import provision  # noqa: E402

# Kiln has no extensions, and no test of the suite needs one.
provision._extensions.clear()
