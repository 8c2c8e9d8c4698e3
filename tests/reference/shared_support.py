"""A support that all ranks know; FORMAT.md, 4.11."""

from reference.randomness import draw

ID = 11


def support(key: int, numel: int, kept: int) -> list[int]:
    """Sorted positions."""
    drawn: set[int] = set()
    left_out = kept > numel // 2
    wanted = numel - kept if left_out else kept
    i = 0
    while len(drawn) < wanted:
        drawn.add(draw(key, i) * numel // 2**64)
        i += 1
    return [position for position in range(numel) if (position in drawn) != left_out]
