"""A chain followed without faults: the same blocks, one commit behind."""

from support.chains.following import Built, Following, Truth

PLAN = [[], [(0, 1), (1, 2)], [(2, 3)]]


def built(truth: Truth, blocks: int) -> list[Built]:
    """This many sealed blocks."""
    jobs = []
    for number in range(blocks):
        jobs.append(truth.job(f"p{number}", PLAN))
        truth.seal(jobs[-1])
    return jobs


def test_each_message_is_one_commit_and_is_published_after_it(
    truth: Truth, following: Following
) -> None:
    for job in built(truth, 3):
        for message in job.messages:
            before = following.commit
            following.hear(message)
            assert following.commit == before + 1
            assert following.published[-1] == message
            assert following.pending == (message.block_number, message.index)


def test_block_is_sealed_by_its_successor(truth: Truth, following: Following) -> None:
    for job in built(truth, 4):
        for message in job.messages:
            following.hear(message)
            assert following.latest == job.number - 1
            assert following.sealed(job.number - 1) == truth.headers[job.number - 1].hash
