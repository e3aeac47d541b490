"""Large files hold what was written, whatever the system makes of the wish not to keep them in memory."""

import errno
import os
import random

import pytest

from npuscope.profiler.writers.large_file import HELD, PIECE, LargeFile, pieces_of


@pytest.fixture(params=["as it is", "unknown flag", "little at a time"])
def system(request, monkeypatch):
    """A system that takes the flag or does not know it, or that writes less than it was given."""
    if request.param == "unknown flag":

        def refused(*arguments):
            raise OSError(errno.EOPNOTSUPP, "no such flag")

        monkeypatch.setattr(os, "pwritev", refused)
        monkeypatch.setattr(os, "preadv", refused)
    if request.param == "little at a time":
        monkeypatch.setattr(os, "pwritev", lambda handle, parts, *rest: os.write(handle, parts[0][:7001]))
    return request.param


def opened(path):
    return LargeFile(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o640))


def test_pieces_of_all_sizes_are_there_in_their_order(tmp_path, system) -> None:
    generator = random.Random(5)
    sizes = [0, 1, 4096, HELD - 1, HELD, HELD + 1, 3 * HELD + 17, *(generator.randrange(40_000) for _ in range(60))]
    pieces = [generator.randbytes(size) for size in sizes]
    path = tmp_path / "file"
    with opened(path) as file:
        for number, piece in enumerate(pieces):
            assert file.write(memoryview(piece) if number % 2 else piece) == len(piece)
            assert file.tell() == sum(map(len, pieces[: number + 1]))
    assert path.read_bytes() == b"".join(pieces)


def test_it_can_write_over_what_it_wrote_and_end_earlier(tmp_path, system) -> None:
    path = tmp_path / "file"
    with opened(path) as file:
        file.write(b"head" + bytes(2 * HELD))
        end = file.tell()
        assert file.seek(0) == 0
        file.write(b"HEAD")
        file.seek(end)
        file.write(b"too much")
        file.seek(end)
        file.truncate()
        file.write(b"tail")
    assert path.read_bytes() == b"HEAD" + bytes(2 * HELD) + b"tail"


def test_a_file_is_read_piece_by_piece(tmp_path, system) -> None:
    content = random.Random(6).randbytes(2 * PIECE + 12345)
    (tmp_path / "file").write_bytes(content)
    assert b"".join(map(bytes, pieces_of(tmp_path / "file"))) == content


def test_what_the_system_says_is_told(tmp_path) -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("there is no /dev/full")
    with pytest.raises(OSError) as told, LargeFile(os.open("/dev/full", os.O_WRONLY)) as file:
        file.write(bytes(4 * HELD))
    assert told.value.errno == errno.ENOSPC
