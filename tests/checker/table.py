"""A verdict as a table."""

from collections import Counter
from collections.abc import Iterator

from checker.judge import Verdict

SHOWN = 5  # contradictions per kind


def table(verdict: Verdict) -> Iterator[str]:
    """The lines to print."""
    yield f"{verdict.flashblocks:>9,} flashblocks with {verdict.transactions:,} transactions"
    yield f"{verdict.exchanges:>9,} responses, with these judged results:"
    for method, count in sorted(verdict.judged.items()):
        yield f"{count:>9,}   {method}"
    for reason, count in sorted((+verdict.unjudged).items()):
        yield f"{count:>9,}   not judged: {reason}"
    kinds = Counter(each.kind for each in verdict.contradictions)
    yield f"{kinds.total():>9,} contradictions"
    for kind, count in kinds.most_common():
        yield f"{count:>9,}   {kind.name}: {kind.value}"
    shown: Counter[object] = Counter()
    for each in verdict.contradictions:
        shown[each.kind] += 1
        if shown[each.kind] <= SHOWN:
            yield ""
            yield str(each)
