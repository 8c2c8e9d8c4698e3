"""The comparison of settings at the first call: what ranks tell one another before any gradient travels."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from hvd_deepreduce import agreement
from hvd_deepreduce.errors import DeepReduceError
from hvd_deepreduce.torch.collectives import finish_gather, start_gather

_introductions: list[weakref.ref[Introduction]] = []


class Introduction:
    """One compressor's. Ranks may begin with different compressors, so the first to begin announces the others too."""

    def __init__(self, name: str, process_set: Any, statement: Callable[[int], bytes]):
        """`statement` makes this rank's, given the number of ranks."""
        self._name = name
        self._process_set = process_set
        self._statement = statement
        self._handle: int | None = None
        self._finished = False
        _introductions.append(weakref.ref(self))

    def finish(self, timeout_s: float) -> None:
        """Waits for the statements of all ranks and compares them.

        Raises `SettingsMismatchError` alike on all ranks, and `CollectiveTimeoutError` when some do not come.
        """
        _announce_all(self)
        if self._handle is None:
            raise DeepReduceError(
                f"two DeepReduce objects of the name {self._name!r} begin at the same time: "
                "give each a name of its own (name=...)"
            )
        gathered = finish_gather(self._handle, f"DeepReduce {self._name!r}, comparing settings", timeout_s)
        self._finished = True
        agreement.compare(gathered, self._process_set.size())

    def announce(self) -> None:
        """Sends this rank's statement; waits for nobody."""
        statement = self._statement(self._process_set.size())
        self._handle = start_gather(statement, f"{self._name}.settings", self._process_set)

    @property
    def key(self) -> tuple[int, str]:
        return self._process_set.process_set_id, self._name

    @property
    def waiting(self) -> bool:
        """Whether this rank takes part and has not sent its statement."""
        return self._handle is None and bool(self._process_set.included())

    @property
    def under_way(self) -> bool:
        """Whether the statement was sent and the others' have not been seen."""
        return self._handle is not None and not self._finished


def _announce_all(first: Introduction) -> None:
    """Announces `first` and all that wait, one of a name: of those that share one, the youngest is the one in use."""
    _introductions[:] = [reference for reference in _introductions if reference() is not None]
    living = [one for reference in reversed(_introductions) if (one := reference()) is not None]
    taken = {one.key for one in living if one.under_way}
    for one in [first, *living]:
        if one.waiting and one.key not in taken:
            taken.add(one.key)
            one.announce()
