"""A dispatcher that charges an API key for each body.

A body is charged once, when its requests are known, the sum of the weights of their methods. It is
refused while the key has no unit left: over HTTP before it is read (`server.keyed`), over WebSocket
here.
"""

import math
from collections.abc import Awaitable, Iterator, Mapping
from typing import Any, Final

from foreblock.errors import KeyBudgetSpent
from foreblock.rpc.batch import Batch
from foreblock.rpc.dispatch import C, Dispatcher, Method
from foreblock.rpc.envelope import Item
from foreblock.rpc.fetching_dispatcher import FetchingDispatcher
from foreblock.scheduling.api_keys import DEFAULT_WEIGHT, ApiKey, KeySpec, held_back
from foreblock.scheduling.reply import Client, Reply


class AllowedMethods(Mapping[str, Method[C]]):
    """The methods of a table that a key may use; those of the table may change."""

    def __init__(self, methods: Mapping[str, Method[C]], key: KeySpec) -> None:
        self._methods: Final = methods
        self._key: Final = key

    def __getitem__(self, name: str) -> Method[C]:
        if not self._key.allows(name):
            raise KeyError(name)
        return self._methods[name]

    def __iter__(self) -> Iterator[str]:
        return filter(self._key.allows, self._methods)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class ChargingDispatcher(Dispatcher[C]):
    """Answers the bodies of one key."""

    def __init__(
        self,
        methods: Mapping[str, Method[C]],
        *rest: Any,  # noqa: ANN401, those of `Dispatcher`
        key: ApiKey,
        **named: Any,  # noqa: ANN401
    ) -> None:
        allowed = AllowedMethods(methods, key.spec) if key.spec.methods else methods
        super().__init__(allowed, *rest, priority=key.spec.priority, **named)
        self._key: Final = key

    def _answer(self, asked: Item | list[Item], client: Client) -> Reply | Awaitable[Reply]:
        key = self._key
        items = asked if isinstance(asked, list) else [asked]
        wait = key.wait()
        if wait > 0:
            key.counts.refused(len(items))
            return held_back(self._refuse_body(asked, KeyBudgetSpent(math.ceil(wait))))
        key.spend(sum(map(self._weight, items)) if items else DEFAULT_WEIGHT, len(items))
        return super()._answer(asked, client)

    def _weight(self, item: Item) -> float:
        return self._key.weights.of(item[0].method) if isinstance(item, tuple) else DEFAULT_WEIGHT

    def _refuse_body(self, asked: Item | list[Item], why: Exception) -> Reply:
        fault = self._fault(why)
        if not isinstance(asked, list):
            return self._refuse(asked, fault)
        items = asked[: self._limits.batch_items]
        batch = Batch(
            items, self._limits, self._clock(), self._budget, self._fault, self._counts.refused
        )
        batch.refuse(fault)
        return batch.reply()


class ChargingFetchingDispatcher(ChargingDispatcher[C], FetchingDispatcher[C]):
    """Answers the bodies of one key over a partial state; a body that runs again costs once."""
