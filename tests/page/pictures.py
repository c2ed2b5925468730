"""Take pictures of the page in every view and at three sizes, to be looked at.

    PYTHONPATH=tests .venv/bin/python tests/page/pictures.py FOLDER --dark --only overview

The overview is taken 2 s and 60 s after it was opened beside new chains, and after a reorganisation
and a dropped flashblock; the other views in between. It fails if something is wider than the
window, or if the browser reports a problem.
"""

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from support.browser.chromium import Browser, running_chromium
from support.browser.page_views import views
from support.browser.tab import Tab, opened_tab
from support.servers.dev_processes import Dev, RpcError, dev_chain
from support.servers.waiting import until

SIZES = ((390, 844), (1024, 768), (1440, 900))
EARLY, LATE = 2.0, 60.0  # seconds after opening
TALLEST = 4000  # pixels of a picture
CONTENT = "Math.ceil(document.querySelector('#sheet .inner')?.getBoundingClientRect().height ?? 0)"
DRAWN = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))"
WIDER = """[...document.querySelectorAll('html, #sheet')]
  .filter((each) => each.scrollWidth > innerWidth).map((each) => each.id || 'page')"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--load", type=int, default=20, help="transactions a second per network")
    parser.add_argument("--late", type=float, default=LATE, help="seconds of the later picture")
    parser.add_argument("--dark", action="store_true")
    parser.add_argument("--only", action="append", help="these views")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    with running_chromium() as browser, dev_chain(f"--load={options.load}", "--workers=1") as dev:
        wrong = list(take_all(browser, dev, options))
    for each in wrong:
        tell(f"wrong: {each}")
    sys.exit(1 if wrong else 0)


def take_all(browser: Browser, dev: Dev, options: argparse.Namespace) -> Iterator[str]:
    """Take all pictures; yields what is wrong."""
    begun = time.monotonic()
    with opened_tab(browser, dev.main.url, dark=options.dark) as tab:
        time.sleep(max(0.0, begun + EARLY - time.monotonic()))
        yield from take(tab, options, "overview-early")
        for name, show in views(dev):
            if name != "overview" and name in (options.only or [name]):
                show(tab)
                yield from take(tab, options, name)
        tab.evaluate("document.querySelector('#help').close(); location.hash = '#/'")
        tab.press("Escape")
        time.sleep(max(0.0, begun + options.late - time.monotonic()))
        yield from take(tab, options, "overview-late")
        dev.main.ask("anvil_reorg", 3, [])
        until(lambda: drop_tail(dev), "a block has a flashblock to drop")
        tab.wait("document.querySelectorAll('.events li').length > 1", "both are marked")
        yield from take(tab, options, "overview-after-reorg")
        yield from tab.problems


def drop_tail(dev: Dev) -> bool:
    """Drop the last flashblock of the block in progress, if it has several."""
    try:
        dev.main.ask("foreblock_dropTail")
    except RpcError:
        return False
    return True


def take(tab: Tab, options: argparse.Namespace, name: str) -> Iterator[str]:
    """Take a picture at each size, as high as the details are; yields what is too wide."""
    for width, height in SIZES:
        tab.set_viewport(width=width, height=height, dark=options.dark)
        shown = min(TALLEST, max(height, tab.evaluate(CONTENT) + 60))
        tab.set_viewport(width=width, height=shown, dark=options.dark)
        tab.evaluate(DRAWN)
        tab.picture(options.folder / f"{name}-{width}.png")
        for part in tab.evaluate(WIDER):
            yield f"{name} at {width}: {part} is wider than the window"
    tell(name)


def tell(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
