from dataclasses import dataclass

from foreblock.lru_cache import LruCache, size_of


@dataclass
class Text:
    size: int


def test_texts_stay_within_their_bytes_and_the_oldest_goes_first() -> None:
    kept = LruCache[bytes | int, Text](60, size_of)
    texts = {key: Text(20) for key in (b"a", b"b", 3)}
    for key, text in texts.items():
        kept.keep(key, text)
    assert all(kept.get(key) is text for key, text in texts.items())
    kept.get(b"a")  # most recently used, so it stays longest
    kept.keep(4, Text(20))
    assert kept.get(b"b") is None
    assert kept.get(b"a") is texts[b"a"]
    assert kept.get(3) is texts[3]


def test_text_that_grew_counts_with_what_it_is_now() -> None:
    kept = LruCache[bytes | int, Text](60, size_of)
    growing, other = Text(20), Text(20)
    kept.keep(1, growing)
    kept.keep(2, other)
    growing.size = 50
    kept.keep(1, growing)
    assert kept.get(2) is None
    assert kept.get(1) is growing
    growing.size = 20
    kept.keep(1, growing)
    kept.keep(2, other)
    kept.keep(3, Text(20))
    assert kept.get(1) is growing, "the bytes it gave back are free"


def test_text_larger_than_everything_is_not_kept() -> None:
    kept = LruCache[int, Text](10, size_of)
    kept.keep(1, Text(11))
    assert kept.get(1) is None


def test_without_sizes_the_number_of_values_is_bounded_and_dropped_keys_are_named() -> None:
    kept = LruCache[int, str](2)
    assert kept.keep(1, "a") == kept.keep(2, "b") == []
    kept.get(1)
    assert kept.keep(3, "c") == [2]
    assert (list(kept.keys()), kept.values()) == ([1, 3], ["a", "c"])
    assert (kept.pop(1), kept.pop(1), len(kept)) == ("a", None, 1)
