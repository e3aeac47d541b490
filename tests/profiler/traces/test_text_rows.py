"""Rows of text from columns, against what Python writes."""

import random

import numpy as np

from npuscope.profiler.writers.text_rows import CHUNK, Hex, Micros, Nanos, Sheet, Text, Texts, Whole, quoted


def text_of(sheet: Sheet) -> bytes:
    return b"".join(bytes(chunk) for chunk in sheet.chunks())


def test_numbers_are_written_as_python_writes_them() -> None:
    values = [0, 1, 9, 10, 999_999, 1_000_000, 123_456_789_012, 2**62, -1, -2_500_000]
    form = (b"<", Whole(0), b"|", Micros(0), b"|", Nanos(0), b">")
    found = text_of(Sheet(Texts(), (form,), np.array([values]))).decode()

    def parts(value: int, scale: int, digits: int) -> str:
        sign, size = "-" if value < 0 else "", abs(value)
        return f"{sign}{size // scale}.{size % scale:0{digits}d}"

    assert found == "".join(f"<{v}|{parts(v, 10**6, 6)}|{parts(v, 1000, 3)}>" for v in values)


def test_hexadecimal_numbers_have_no_sign_and_may_be_missing() -> None:
    values = [0, 9, 10, 15, 16, 255, 0x12C0_0000_0000, 2**63 - 1, -1]
    found = text_of(Sheet(Texts(), ((Hex(0), b";"),), np.array([values]))).decode()
    assert found == "".join(f"{value:x};" if value >= 0 else ";" for value in values)


def test_rows_choose_their_form_and_go_over_many_chunks() -> None:
    rows = 2 * CHUNK + 3
    texts = Texts()
    names = texts.numbers([b"a", b"", b"long text"])
    which = np.arange(rows) % 3
    form = np.arange(rows) % 2
    sheet = Sheet(texts, ((Text(0), b"="), (Whole(1), b";")), np.stack([names[which], np.arange(rows)]), form)
    expected = b"".join(
        (b"%d;" % row) if row % 2 else ((b"a", b"", b"long text")[row % 3] + b"=") for row in range(rows)
    )
    assert text_of(sheet) == expected


def test_no_rows_are_no_text() -> None:
    assert text_of(Sheet(Texts(), ((b"x", Whole(0)),), np.zeros((1, 0), np.int64))) == b""


def test_equal_texts_share_a_number() -> None:
    texts = Texts()
    assert texts.numbers([b"x", b"y", b"x"]).tolist() == [0, 1, 0]
    assert texts.more([b"x"]) == 2
    blob, starts = texts.packed()
    assert blob.tobytes() == b"xyx" and starts.tolist() == [0, 1, 2, 3]


def test_quoted_text_is_json_whatever_it_holds() -> None:
    import json

    for text in ('a"b\\c\n\t', "核函数", "\x00\x1f", "bad \udcff name"):
        assert json.loads(quoted(text))
    random.seed(1)
    word = "".join(chr(random.randrange(1, 0x2FF)) for _ in range(200))
    assert json.loads(quoted(word)) == word
