"""What a finding of the doctor must say."""

from __future__ import annotations

from gpu_windows.doctor import Finding, Status


def judged(found: Finding, status: Status, *parts: str) -> None:
    """Check a finding: its status, what it says, and that it says how to mend what is wrong."""
    assert found.status is status, found
    assert bool(found.mend) is (status is not Status.OK), found
    for part in parts:
        assert part in f"{found.found} {found.mend}", found
