"""The changes to a page before mkdocs renders it."""

from website.nav import Page, pages
from website.rewriting import bars_in_code, for_the_site, linked_names, one_title


def page_of(path: str) -> Page:
    (found,) = (page for page in pages() if page.path == path)
    return found


def test_a_page_with_several_titles_gets_one() -> None:
    code = "\n```\n# a comment\n```\n"
    text = f"# Methods\n{code}\n## One\n\n# Family\n\n## Two\n"
    assert one_title(text) == f"# Methods\n{code}\n### One\n\n## Family\n\n### Two\n"
    assert one_title(f"# Only\n{code}\n## One\n") == f"# Only\n{code}\n## One\n"


def test_bars_are_bare_in_code_and_escaped_elsewhere() -> None:
    row = "| `[a\\|b]` | x \\| y |\n`c\\|d`\n"
    assert bars_in_code(row) == "| `[a|b]` | x \\| y |\n`c\\|d`\n"


def test_names_of_pages_are_links_from_where_they_stand() -> None:
    design = page_of("design/state.md")
    assert linked_names("`docs/rpc.md`", design) == "[`docs/rpc.md`](../rpc.md)"
    assert linked_names("`CHANGELOG.md`", design) == "[`CHANGELOG.md`](../CHANGELOG.md)"
    assert linked_names("`docs/design/state.md` `docs/no.md`", design) == (
        "`docs/design/state.md` `docs/no.md`"
    )
    linked = "[`docs/rpc.md`](../rpc.md)"
    assert linked_names(linked, design) == linked


def test_every_method_is_below_the_one_title_of_its_page() -> None:
    text = for_the_site(page_of("dev-methods.md"))
    assert text.startswith("# Methods of development chains\n")
    assert "\n### `evm_mine`\n" in text
    assert "\n# " not in text
