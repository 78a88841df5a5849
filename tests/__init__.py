"""The package's `__init__` makes pytest rewrite the asserts of `oracles`, so their failures show the compared
values."""

import pytest

pytest.register_assert_rewrite("oracles")
