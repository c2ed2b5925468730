"""A node over HTTP with the plain state, with configurable abilities and injected faults."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from support.servers.toy_endpoint import HttpRequest, ToyResponse, answered, http_endpoint, refusal
from support.upstreams.plain_state import AT, METHODS, data, header

TIP = AT.number + 2
HASHES = {header(number).hash: number for number in range(255)}


Weather = Callable[[int, list[dict[str, Any]]], ToyResponse | None]


@dataclass
class ToyNode:
    """The abilities of the node, its received requests, and the faults in its responses."""

    overrides: bool = True
    values: bool = True
    proofs: int | None = 1 << 20  # number of blocks below the tip
    batches: int = 100
    forms: frozenset[str] = frozenset({"number", "hash", "canonical", "bare"})
    tip: int = TIP
    weather: Weather | None = None
    lies: dict[str, Callable[[Any], Any]] = field(default_factory=dict)  # results, by method
    asked: list[tuple[str, list[Any]]] = field(default_factory=list)
    bodies: int = 0
    url: str = ""

    def count(self, method: str) -> int:
        """Return the number of requests for a method."""
        return sum(each == method for each, _ in self.asked)

    def result_or_lie(self, method: str, params: list[Any]) -> object:
        """Return the result, or the configured false one."""
        self.asked.append((method, params))
        found = self.result(method, params)
        return self.lies[method](found) if method in self.lies else found

    def result(self, method: str, params: list[Any]) -> object:
        """Return the honest result, or the error of a node without some ability."""
        match method:
            case "eth_chainId":
                return "0x2105"
            case "web3_clientVersion":
                return "ToyNode/v1"
            case "eth_getBlockByNumber":
                number = self.tip if params[0] in ("latest", "pending") else int(params[0], 16)
                return METHODS[method]([hex(number), False]) if number <= self.tip else None
            case "eth_getStorageValues" if not self.values:
                raise refusal(-32601, "the method does not exist/is not available")
            case "eth_getProof" if self.proofs is None:
                raise refusal(-32601, "the method does not exist/is not available")
            case _ if method not in METHODS:
                raise refusal(-32601, f"the method {method} does not exist/is not available")
            case _:
                return self.of_a_state(method, params)

    def of_a_state(self, method: str, params: list[Any]) -> object:
        """Return the result of a method with a block parameter."""
        places = {"eth_getProof": 2, "eth_getStorageAt": 2}
        number = self.number(params[places.get(method, 1)])
        if method == "eth_getProof" and self.tip - number > (self.proofs or 0):
            raise refusal(-32000, "distance to target block exceeds maximum proof window")
        if method == "eth_call":
            return self.call(params)
        return METHODS[method](params)

    def call(self, params: list[Any]) -> object:
        """Call the extractor, if overrides are supported."""
        if not self.overrides:
            return "0x"
        laid = [each["stateDiff"] for each in params[2].values() if "stateDiff" in each]
        return next(iter(laid[0].values())) if laid else METHODS["eth_call"](params)

    def number(self, block: Any) -> int:  # noqa: ANN401, JSON
        """Parse a block parameter."""
        match block:
            case "latest":
                return self.tip
            case {"blockHash": str(name), "requireCanonical": True} if "canonical" in self.forms:
                found = HASHES.get(data(name))
            case {"blockHash": str(name), **rest} if "hash" in self.forms and not rest:
                found = HASHES.get(data(name))
            case str(name) if len(name) == 66 and "bare" in self.forms:
                found = HASHES.get(data(name))
            case str(name) if len(name) < 20 and "number" in self.forms:
                found = int(name, 16)
            case _:
                raise refusal(-32602, "invalid argument: block")
        if found is None or found > self.tip:
            raise refusal(-32000, "header not found")
        return found


@contextmanager
def toy_node(node: ToyNode, path: str = "") -> Iterator[ToyNode]:
    """The node at an address, which it then has."""

    def reply(request: HttpRequest) -> ToyResponse:
        asked = json.loads(request.body)
        requests = asked if isinstance(asked, list) else [asked]
        node.bodies += 1
        said = (node.weather and node.weather(node.bodies, requests)) or ToyResponse()
        if len(requests) > node.batches:
            error = {"code": -32600, "message": f"batch limit is {node.batches}"}
            honest = json.dumps({"jsonrpc": "2.0", "id": None, "error": error}).encode()
        else:
            honest = answered(node.result_or_lie, request.body)
        return said._replace(body=honest) if said.body is None else said

    with http_endpoint(reply) as url:
        node.url = url + path
        yield node
