"""The check of the built site finds its kinds of errors."""

from pathlib import Path

import pytest

from website.check import problems

GOOD = """
<link rel="stylesheet" href="style.css"><link rel="canonical" href="https://example.org/">
<h1 id="top">x</h1><a href="#top">x</a><a href="other.html#there">x</a>
<a href="https://example.org/">elsewhere</a><img src="data:image/png;base64,AA==">
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "index.html").write_text(GOOD)
    (tmp_path / "other.html").write_text('<h2 id="there">x</h2>')
    (tmp_path / "style.css").write_text("a { background: url(data:image/svg+xml,x) }")
    return tmp_path


def test_a_site_that_is_whole_has_no_problems(site: Path) -> None:
    assert list(problems(site)) == []


@pytest.mark.parametrize(
    "tag",
    [
        '<script src="https://cdn.example/x.js"></script>',
        '<script src="//cdn.example/x.js"></script>',
        '<link rel="preconnect" href="https://fonts.example">',
        '<link rel="icon" href="http://example.org/x.png">',
        '<img src="https://example.org/x.png">',
        "<style>@import 'https://fonts.example/x.css';</style>",
        '<p style="background: url(https://example.org/x.png)">x</p>',
        '<img src="gone.png">',
        '<a href="gone.html">x</a>',
        '<a href="other.html#gone">x</a>',
        '<a href="#gone">x</a>',
    ],
)
def test_what_is_wrong_in_a_page_is_found(site: Path, tag: str) -> None:
    (site / "index.html").write_text(GOOD + tag)
    (found,) = problems(site)
    assert found.startswith("index.html ")


def test_what_a_style_sheet_loads_is_found(site: Path) -> None:
    (site / "style.css").write_text('@font-face { src: url("https://fonts.example/x.woff2") }')
    assert list(problems(site)) == ["style.css loads https://fonts.example/x.woff2"]


def test_a_site_without_pages_is_none(tmp_path: Path) -> None:
    assert list(problems(tmp_path)) == [f"{tmp_path} has no pages"]
