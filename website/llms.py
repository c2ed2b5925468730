"""llms.txt and llms-full.txt: the site for programs that read text (https://llmstxt.org)."""

import re

from website.nav import Page, pages

SUMMARY = (
    "A JSON-RPC read service for Ethereum-style layer-2 chains with a real `pending` block, "
    "and local dev chains that have one."
)
LINK = re.compile(r"\[([^\]]+)\]\([^)]+\)")


def first_sentence(page: Page) -> str:
    """The first sentence of a page, without its links."""
    text = re.sub(r"```.*?```", "", page.text(), flags=re.DOTALL)
    for line in text.splitlines():
        plain = LINK.sub(r"\1", line)
        if plain and (plain[0].isalpha() or re.match(r"`[^`]+`", plain)):
            return plain.rstrip(":")
    return page.title


def index() -> str:
    """llms.txt: every page with its first sentence, by section."""
    parts = ["# foreblock\n\n", f"> {SUMMARY}\n"]
    section = ""
    for page in pages():
        if page.section != section:
            section = page.section
            parts.append(f"\n## {section}\n\n")
        parts.append(f"- [{page.title}]({page.path}): {first_sentence(page)}\n")
    return "".join(parts)


def full() -> str:
    """llms-full.txt: every page as a whole."""
    return "\n\n".join(f"<!-- {page.path} -->\n\n{page.text().strip()}" for page in pages()) + "\n"
