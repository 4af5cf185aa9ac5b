"""How large a test is: small for each change, large where one takes the time to look for more."""

from hypothesis import settings


def size(quick: int, thorough: int) -> int:
    """Give the size for this run; `make chaos` and `make test PROFILE=thorough` take the large."""
    return thorough if settings.get_current_profile_name() == "thorough" else quick
