"""Every malformed shape, one row each, answered as other nodes answer it."""

import json

import pytest

from toys import Toys, call, parse

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
    "deep nesting": (b"[" * 100_000, PARSE_ERROR),
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


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_body_is_answered_with_its_error(name: str) -> None:
    body, (code, message, echoed) = MALFORMED[name]
    answer = parse(Toys().answer(body))
    assert answer == {"jsonrpc": "2.0", "id": echoed, "error": {"code": code, "message": message}}


IDS = [
    "1", "0", "-1", "1.50", "1e400", "-1E+5", "12345678901234567890123", '""', '"a"',
    r'"\u0041"', r'"\"\\\/\b"', '"ä"', '"😀"', r'"\ud83d\ude00"', "null", "true", "false",
]  # fmt: skip


@pytest.mark.parametrize("id", IDS)
def test_id_comes_back_byte_for_byte(id: str) -> None:
    reply = Toys().answer(call("echo", "[1]", id))
    assert reply.body == f'{{"jsonrpc":"2.0","id":{id},"result":[1]}}'.encode()


@pytest.mark.parametrize("id", IDS)
def test_id_of_an_error_comes_back_byte_for_byte(id: str) -> None:
    reply = Toys().answer(call("fail", '["no"]', id))
    assert reply.body.startswith(f'{{"jsonrpc":"2.0","id":{id},"error":'.encode())


def test_last_of_equal_keys_wins() -> None:
    body = b'{"jsonrpc":"1.0","jsonrpc":"2.0","id":1,"id":2,"method":"x","method":"echo"}'
    assert Toys().answer(body).body == b'{"jsonrpc":"2.0","id":2,"result":null}'


def test_space_around_and_inside_is_no_matter() -> None:
    body = b' {\n"id" : 1 ,\t"method":"echo", "params" : [ 1 ] , "jsonrpc":"2.0"\r\n} \n'
    assert parse(Toys().answer(body)) == {"jsonrpc": "2.0", "id": 1, "result": [1]}


def test_unknown_members_are_ignored() -> None:
    body = b'{"jsonrpc":"2.0","id":1,"method":"echo","params":[],"more":{"a":[1e999]}}'
    assert parse(Toys().answer(body))["result"] == []


@pytest.mark.parametrize("params", ["null", "{}", '{"a":1}', "5", '"x"', "[[[]]]"])
def test_params_reach_the_method_as_they_are(params: str) -> None:
    toys = Toys()
    toys.answer(call("echo", params))
    assert toys.ran == [params.encode()]


def test_absent_params_are_null() -> None:
    assert parse(Toys().answer(b'{"jsonrpc":"2.0","id":1,"method":"echo"}'))["result"] is None


def test_data_of_an_error_is_left_out_when_there_is_none() -> None:
    with_data = parse(Toys().answer(call("fail", '["with data"]')))
    assert with_data["error"] == {"code": -32000, "message": "with data", "data": "0x01"}
    assert "data" not in parse(Toys().answer(call("fail", '["no"]')))["error"]


def test_text_in_an_error_is_escaped() -> None:
    message = 'quote " backslash \\ newline \n ä'
    answer = parse(Toys().answer(call("fail", json.dumps([message]))))
    assert answer["error"]["message"] == message
