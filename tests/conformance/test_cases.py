"""Parse case files."""

from pathlib import Path

import pytest

from foreblock.conformance.cases import parse_case, read_cases
from foreblock.errors import InvalidArgument

ONE = '// why\n>> {"id":1,"method":"eth_x","params":[]}\n<< {"id":1,"result":"0x1"}\n'


def test_comment_request_reply() -> None:
    case = parse_case("eth_x", "one", ONE)
    assert str(case) == "eth_x/one"
    assert not case.shape_only
    (exchange,) = case.exchanges
    assert exchange.methods == ("eth_x",)
    assert exchange.reply == b'{"id":1,"result":"0x1"}'


def test_several_exchanges_and_a_notification() -> None:
    case = parse_case("m", "n", ONE + '\n>> {"method":"a"}\n>> [{"method":"b"}]\n<< []\n>> {}\n')
    assert [each.reply is None for each in case.exchanges] == [False, True, False, True]
    assert [each.methods for each in case.exchanges][2] == ("b",)


def test_shape_only() -> None:
    assert parse_case("m", "n", "// speconly: values differ\n" + ONE).shape_only


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no request"),
        ("<< {}", "line 1: a reply without its request"),
        (">> {", "line 1: not JSON"),
        ("// a\n> {}", "line 2: neither"),
    ],
)
def test_bad_files_name_the_line(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_case("m", "n", text)


def test_folder_is_the_method_and_order_is_by_name(tmp_path: Path) -> None:
    for name in ("eth_b/two.io", "eth_b/one.io", "eth_a/x.io", "loose.io"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(ONE)
    assert {str(case) for case in read_cases(tmp_path)} == {
        "eth_a/x", "eth_b/one", "eth_b/two", "eth_x/loose",
    }  # fmt: skip


def test_empty_folder_and_broken_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="there is no case"):
        read_cases(tmp_path)
    (tmp_path / "broken.io").write_text(">> {")
    with pytest.raises(InvalidArgument, match=r"broken\.io: line 1"):
        read_cases(tmp_path)


def test_every_published_case_is_read(conformance: Path) -> None:
    cases = read_cases(conformance)
    assert len(cases) == len(list(conformance.rglob("*.io")))
    assert all(case.method == case.exchanges[0].methods[0] for case in cases)
