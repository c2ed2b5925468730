"""Envelopes: every malformed shape gets the same response as from other nodes."""

import json

from support.each_case import each_case
from support.servers.toys import Toys, call, parse
from support.strategies.requests_strategy import MALFORMED


@each_case("name", MALFORMED)
def test_malformed_body_is_answered_with_its_error(name: str) -> None:
    body, (code, message, echoed) = MALFORMED[name]
    answer = parse(Toys().answer(body))
    assert answer == {"jsonrpc": "2.0", "id": echoed, "error": {"code": code, "message": message}}


IDS = [
    "1", "0", "-1", "1.50", "1e400", "-1E+5", "12345678901234567890123", '""', '"a"',
    r'"\u0041"', r'"\"\\\/\b"', '"ä"', '"😀"', r'"\ud83d\ude00"', "null", "true", "false",
]  # fmt: skip


@each_case("id", IDS)
def test_id_comes_back_byte_for_byte(id: str) -> None:
    reply = Toys().answer(call("echo", "[1]", id))
    assert reply.body == f'{{"jsonrpc":"2.0","id":{id},"result":[1]}}'.encode()


@each_case("id", IDS)
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


@each_case("params", ["null", "{}", '{"a":1}', "5", '"x"', "[[[]]]"])
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
