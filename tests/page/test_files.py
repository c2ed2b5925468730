"""The files of the page: complete, of the right kinds, and without external resources."""

import json
import re

from foreblock.page.files import ShownNetwork, documents_of, load_files

FILES = load_files()
NETWORKS = [ShownNetwork("main", 8545), ShownNetwork("test", 9545)]


def text(path: bytes) -> str:
    return FILES[path].text.decode()


def test_every_file_that_is_named_is_there() -> None:
    html = text(b"/ui")
    named = re.findall(r'(?:href|src)="(ui/[^"]+)"', html)
    assert named
    assert {b"/" + each.encode() for each in named} <= set(FILES)
    for path, document in FILES.items():
        if path.endswith(b".js"):
            found = re.findall(r'from "\./([^"]+)"', document.text.decode())
            assert {b"/ui/" + each.encode() for each in found} <= set(FILES)


def test_scripts_have_a_type_that_browsers_run() -> None:
    kinds = {path.rpartition(b".")[2]: document.kind for path, document in FILES.items()}
    assert kinds[b"js"] == b"text/javascript; charset=utf-8"
    assert kinds[b"css"] == b"text/css; charset=utf-8"
    assert kinds[b"svg"] == b"image/svg+xml"


def test_nothing_is_inline_and_nothing_comes_from_elsewhere() -> None:
    html = text(b"/ui")
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=|javascript:", html)
    for path, document in FILES.items():
        code = re.sub(r"(?m)^\s*//.*$", "", document.text.decode())
        addresses = set(re.findall(r"https?://[^\s\"')]+", code))
        assert addresses <= {"http://www.w3.org/2000/svg"}, path


def test_no_markup_is_made_from_texts() -> None:
    for path, document in FILES.items():
        if path.endswith(b".js"):
            forbidden = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|DOMParser"
            assert not re.search(forbidden, document.text.decode()), path


def test_all_files_together_are_small() -> None:
    assert sum(len(document.text) for document in FILES.values()) < 250_000


def test_each_network_says_which_it_is_and_where_the_others_are() -> None:
    documents = documents_of(FILES, NETWORKS, 1)
    told = json.loads(documents.by_path[b"/ui/networks.json"].text)
    assert told["here"] == "test"
    assert told["networks"] == [{"name": "main", "port": 8545}, {"name": "test", "port": 9545}]
    assert documents.siblings == {8545}
    assert documents.page in documents.by_path


def test_an_equal_file_keeps_its_tag_and_another_has_another() -> None:
    assert {path: each.tag for path, each in load_files().items()} == {
        path: each.tag for path, each in FILES.items()
    }
    assert len({each.tag for each in FILES.values()}) == len(FILES)
