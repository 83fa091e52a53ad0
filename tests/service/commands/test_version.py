"""`kubestow version`: what a bug report needs."""

import json
import platform

import numpy as np
import pytest
import yaml
from typer.testing import CliRunner

from kubestow import __version__
from kubestow.service.cli import app

EXPECTED = {
    "kubestow": __version__,
    "kubernetes": ["v1.37.0-rc.1", "v1.36.4"],
    "python": platform.python_version(),
    "numpy": np.__version__,
}


def test_it_is_printed_for_people() -> None:
    result = CliRunner().invoke(app, ["version"])
    assert result.exit_code == 0
    lines = [line.split(maxsplit=1) for line in result.output.splitlines()]
    texts = EXPECTED | {"kubernetes": "v1.37.0-rc.1, v1.36.4"}
    assert [value for _, value in lines] == [*texts.values()]
    assert [name for name, _ in lines] == ["kubestow", "Kubernetes", "Python", "NumPy"]


@pytest.mark.parametrize(("output", "read"), [("json", json.loads), ("yaml", yaml.safe_load)])
def test_programs_can_read_it(output: str, read: object) -> None:
    result = CliRunner().invoke(app, ["version", "-o", output])
    assert callable(read)
    assert read(result.output) == EXPECTED
