"""Bodies of every malformed shape, one row each, with code, message and id of the answer."""

from support.servers.toys import call

PARSE_ERROR = (-32700, "parse error", None)
INVALID = -32600, "invalid request"

MALFORMED = {
    "nothing": (b"", PARSE_ERROR),
    "no JSON": (b"hello", PARSE_ERROR),
    "cut short": (b'{"jsonrpc":"2.0","id":1', PARSE_ERROR),
    "trailing bytes": (call("echo") + b"x", PARSE_ERROR),
    "two values": (call("echo") + call("echo"), PARSE_ERROR),
    "NaN": (call("echo", "[NaN]"), PARSE_ERROR),
    "infinity": (call("echo", "[Infinity]"), PARSE_ERROR),
    "leading zeros": (call("echo", "[01]"), PARSE_ERROR),
    "trailing comma": (call("echo", "[1,]"), PARSE_ERROR),
    "single quotes": (b"{'jsonrpc':'2.0','id':1,'method':'echo'}", PARSE_ERROR),
    "comment": (b'/**/{"jsonrpc":"2.0","id":1,"method":"echo"}', PARSE_ERROR),
    "raw control character": (call("echo", '["\n"]'), PARSE_ERROR),
    "byte order mark": (b"\xef\xbb\xbf" + call("echo"), PARSE_ERROR),
    "UTF-16": (call("echo").decode().encode("utf-16"), PARSE_ERROR),
    "bad UTF-8 in an id": (b'{"jsonrpc":"2.0","id":"\xff","method":"echo"}', PARSE_ERROR),
    "bad UTF-8 in params": (b'{"jsonrpc":"2.0","id":1,"method":"echo","params":["\xc3"]}',
                            PARSE_ERROR),
    "bad UTF-8 in a method": (b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', PARSE_ERROR),
    "lone surrogate": (rb'{"jsonrpc":"2.0","id":"\ud800","method":"echo"}', PARSE_ERROR),
    "deep nesting": (b"[" * 60_000, PARSE_ERROR),
    "deep nesting in params": (
        call("echo", "[" * 5000 + "]" * 5000), PARSE_ERROR),
    "deep batch": (b"[" * 5000 + b"]" * 5000, PARSE_ERROR),
    "a number": (b"5", (*INVALID, None)),
    "a string": (b'"echo"', (*INVALID, None)),
    "null": (b"null", (*INVALID, None)),
    "true": (b" true ", (*INVALID, None)),
    "empty object": (b"{}", (*INVALID, None)),
    "no version": (b'{"id":7,"method":"echo"}', (*INVALID, 7)),
    "version 1.0": (b'{"jsonrpc":"1.0","id":7,"method":"echo"}', (*INVALID, 7)),
    "version as a number": (b'{"jsonrpc":2.0,"id":7,"method":"echo"}', (*INVALID, 7)),
    "no method": (b'{"jsonrpc":"2.0","id":7}', (*INVALID, 7)),
    "empty method": (call("", "[]", "7"), (*INVALID, 7)),
    "method as a number": (b'{"jsonrpc":"2.0","id":7,"method":5}', (*INVALID, 7)),
    "method null": (b'{"jsonrpc":"2.0","id":"a","method":null}', (*INVALID, "a")),
    "id as an object": (call("echo", "[]", "{}"), (*INVALID, None)),
    "id as an array": (call("echo", "[]", "[1]"), (*INVALID, None)),
    "id as an object and no method": (b'{"jsonrpc":"2.0","id":{"a":1}}', (*INVALID, None)),
    "no method and no id": (b'{"jsonrpc":"2.0"}', (*INVALID, None)),
    "a response": (b'{"jsonrpc":"2.0","id":3,"result":1}', (*INVALID, 3)),
    "unknown method": (
        call("what"), (-32601, "the method what does not exist/is not available", 1)),
    "long method": (call("e" * 2049), (-32600, "method name too long: 2049 > 2048", 1)),
    "longest method": (
        call("e" * 2048), (-32601, f"the method {'e' * 2048} does not exist/is not available", 1)),
    "empty batch": (b"[]", (-32600, "empty batch", None)),
    "empty batch with spaces": (b" [ ] ", (-32600, "empty batch", None)),
}  # fmt: skip
