"""Files of measurements: what is written is read again, and errors name line and field."""

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.errors import InputError
from kubestow.usage.file_format import (
    BadLine,
    UsageWriter,
    read_lines,
    read_usage,
    usage_bytes,
)
from kubestow.usage.measurement import CPU_MILLI_MAX, MEMORY_BYTES_MAX, Amounts, Measurement

amounts = st.builds(Amounts, st.integers(0, CPU_MILLI_MAX), st.integers(0, MEMORY_BYTES_MAX))
names = st.text("abc-0", min_size=1, max_size=9)
times = st.integers(0, 4_000_000_000_000).map(lambda milli: milli * 10**6)
windows = st.integers(0, 3_600_000).map(lambda milli: milli * 10**6)
nothing = st.just("")
measurements = st.builds(
    Measurement,
    times,
    amounts,
    node=names,
    namespace=nothing,
    pod=nothing,
    workload=nothing,
    window_ns=windows,
    p95=st.none() | amounts,
    peak=st.none() | amounts,
) | st.builds(
    Measurement,
    times,
    amounts,
    node=names | nothing,
    namespace=names,
    pod=names,
    workload=names | nothing,
    window_ns=windows,
    p95=st.none(),
    peak=st.none() | amounts,
)


@given(st.lists(measurements, max_size=5))
def test_what_is_written_is_read_again(written):
    assert list(read_lines(usage_bytes(written))) == written


def test_a_written_file_is_read_packed_or_not(tmp_path):
    written = [Measurement(90 * 10**9, Amounts(250, 1 << 28), node="n1", window_ns=30 * 10**9)]
    writer = UsageWriter(tmp_path / "usage.jsonl")
    writer.write(written)
    writer.flush()
    writer.close()
    content = (tmp_path / "usage.jsonl").read_bytes()
    assert content == b'{"time":90,"node":"n1","cpu":0.25,"memory":268435456,"window":30}\n'
    (tmp_path / "usage.jsonl.gz").write_bytes(gzip.compress(content))
    assert list(read_usage(tmp_path / "usage.jsonl")) == written
    assert list(read_usage(tmp_path / "usage.jsonl.gz")) == written


def test_csv_has_the_same_fields():
    content = b"time,node,namespace,pod,cpu,memory,cpuPeak,memoryPeak\r\n"
    content += b"2026-01-31T12:00:00Z,n1,,,1500m,6Gi,2,7Gi\r\n"
    content += b"1.5,,web,a-1,0.25,1e6,,\r\n"
    node, pod = read_lines(content)
    assert node == Measurement(
        1769860800 * 10**9, Amounts(1500, 6 << 30), node="n1", peak=Amounts(2000, 7 << 30)
    )
    assert pod == Measurement(1_500_000_000, Amounts(250, 10**6), namespace="web", pod="a-1")


@pytest.mark.parametrize(
    ("content", "line", "problem"),
    [
        (b"a,b\n1,2\n", 1, 'unknown column "a"'),
        (b"time,cpu\n", 1, 'the column "memory" is missing'),
        (b"time,cpu,cpu,memory\n", 1, 'the column "cpu" is given twice'),
        (b"time,node,cpu,memory\n1,n1,1\n", 2, "has 3 columns, expected 4 as in line 1"),
        (b"time,node,cpu,memory\n1,n1,nan,1\n", 2, 'cpu is "nan"'),
        (b"time,node,cpu,memory\n1,n1,-1,1\n", 2, "an amount is negative"),
        (b"time,node,cpu,memory\nnan,n1,1,1\n", 2, "time is nan"),
        (b"time,node,cpu,memory\nnow,n1,1,1\n", 2, 'time is "now", expected seconds'),
        (b"time,node,cpu,memory\n1,,1,1\n", 2, "expected the name of a node"),
        (b"time,node,cpu,memory\n1,n1,1,1e30\n", 2, "larger than any machine has"),
        (b'time,node\n"', 1, 'the column "cpu" is missing'),
        (b"\xff\xfe", 1, "not text in UTF-8"),
        (b'{"time":1,"node":"n1","cpu":1}', 1, "memory"),
        (b'{"time":1,"node":"n1","cpu":1,"memory":1,"gpu":1}', 1, "gpu"),
        (b'{"time":1,"node":"n1","cpu":1,"memory":1,"cpuP95":2}', 1, "both cpuP95 and memoryP95"),
        (b'{"time":"2026-01-31T12:00:00","node":"n","cpu":1,"memory":1}', 1, "no time zone"),
        (b'{"time":1e30,"node":"n","cpu":1,"memory":1}', 1, "time is 1e+30"),
        (b'{"time":1,"node":"n","cpu":1,"memory":1e999}', 1, "memory"),
        (b'{"time":1,"node":"n","cpu":1e306,"memory":1}', 1, "cpu is 1e+306, expected"),
    ],
)
def test_a_bad_line_is_named(content, line, problem):
    (bad,) = read_lines(content)
    assert isinstance(bad, BadLine)
    assert bad.line == line
    assert problem in bad.problem


def test_reading_goes_on_after_a_bad_line():
    content = b'{"time":1}\n\n{"time":1,"node":"n1","cpu":1,"memory":1}\n'
    bad, good = read_lines(content)
    assert isinstance(bad, BadLine)
    assert good == Measurement(10**9, Amounts(1000, 1), node="n1")


@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_any_content_is_read_or_refused(content):
    for found in read_lines(content):
        assert isinstance(found, Measurement | BadLine)


def test_an_error_names_file_and_line(tmp_path):
    path = tmp_path / "usage.csv"
    path.write_text("time,node,cpu,memory\n1,n1,1,1\n2,n1,x,1\n")
    with pytest.raises(InputError, match=r"usage\.csv, line 3: cpu is \"x\""):
        list(read_usage(path))
    with pytest.raises(InputError, match="cannot read"):
        list(read_usage(tmp_path / "none"))
