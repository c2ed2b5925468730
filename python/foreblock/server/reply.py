"""What the server is given: a handler from a request's body to a reply."""

from collections.abc import Awaitable, Callable

from foreblock.reply import Reply

__all__ = ["Handler", "Reply"]

# It never raises. It answers at once where it can; an awaitable keeps its place in the order
# of answers and is cancelled when the client goes away.
Handler = Callable[[bytes], Reply | Awaitable[Reply]]
