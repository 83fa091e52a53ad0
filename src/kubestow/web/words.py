"""Word lists: values that many rows share, sent once and referred to by their index.

They grow while a page is followed. When one has too many entries, as after a day of messages that
all differ, everything is started again with a new state.
"""

from collections.abc import Hashable, Sequence
from typing import Final, Generic, TypeVar

from kubestow.api.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, Resources
from kubestow.web.protocol import Resource, Words

T = TypeVar("T", bound=Hashable)

# Entries of one list.
WORDS_MAX: Final = 50_000
# Longer texts are cut: a message names each rejecting taint.
TEXT_LENGTH_MAX: Final = 400

_FIRST: Final = (
    Resource(name=CPU, unit="milli"),
    Resource(name=MEMORY, unit="bytes"),
    Resource(name=EPHEMERAL_STORAGE, unit="bytes"),
    Resource(name=PODS, unit="count"),
)
_BYTES_PREFIX: Final = "hugepages-"


class WordList(Generic[T]):
    """Distinct values in the order in which they were first seen."""

    def __init__(self, first: Sequence[T] = ()) -> None:
        self.words: list[T] = list(first)
        self._index = {word: index for index, word in enumerate(first)}
        self._sent = 0

    def index(self, word: T) -> int:
        found = self._index.get(word)
        if found is None:
            found = self._index[word] = len(self.words)
            self.words.append(word)
        return found

    def take_new(self) -> tuple[T, ...]:
        """What was added since the last call."""
        new = tuple(self.words[self._sent :])
        self._sent = len(self.words)
        return new


class WordLists:
    def __init__(self, groupings: Sequence[str]) -> None:
        self.groupings = WordList[str](groupings)
        self.owners = WordList[str](("",))
        self.requests = WordList[tuple[int, ...]]()
        self.reasons = WordList[str](("",))
        self.rejectors = WordList[str](("",))
        self._resources = WordList[Resource](_FIRST)
        self._columns: dict[str, int] = {}

    @property
    def is_full(self) -> bool:
        lists = (self.owners, self.requests, self.reasons, self.rejectors)
        return any(len(each.words) > WORDS_MAX for each in lists)

    def amounts(self, resources: Resources, *, pods: int) -> tuple[int, ...]:
        """The amounts in the order of the list of resources."""
        first = (resources.milli_cpu, resources.memory, resources.ephemeral_storage, pods)
        if not resources.scalar:
            return first
        columns = {self._column(name): amount for name, amount in resources.scalar.items()}
        last = max(columns)
        return (*first, *(columns.get(column, 0) for column in range(len(_FIRST), last + 1)))

    def reason(self, text: str) -> int:
        if len(text) > TEXT_LENGTH_MAX:
            text = f"{text[: TEXT_LENGTH_MAX - 1]}…"
        return self.reasons.index(text)

    def resource_names(self) -> tuple[str, ...]:
        return tuple(each.name for each in self._resources.words)

    def all(self) -> Words:
        return Words(
            resources=tuple(self._resources.words),
            groupings=tuple(self.groupings.words),
            owners=tuple(self.owners.words),
            requests=tuple(self.requests.words),
            reasons=tuple(self.reasons.words),
            rejectors=tuple(self.rejectors.words),
        )

    def take_new(self) -> Words | None:
        """What was added since the last call; None if nothing was."""
        new = Words(
            resources=self._resources.take_new(),
            groupings=self.groupings.take_new(),
            owners=self.owners.take_new(),
            requests=self.requests.take_new(),
            reasons=self.reasons.take_new(),
            rejectors=self.rejectors.take_new(),
        )
        return None if new == Words() else new

    def _column(self, name: str) -> int:
        column = self._columns.get(name)
        if column is None:
            unit = "bytes" if name.startswith(_BYTES_PREFIX) else "count"
            column = self._columns[name] = self._resources.index(Resource(name=name, unit=unit))
        return column
