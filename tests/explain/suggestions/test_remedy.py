import re
from pathlib import Path

from kubestow.explain.suggestions.remedy import (
    NEW_VOLUME,
    SIZES,
    SKEW_STEP,
    SYSTEM_TAINT,
    WHOLE_RULE,
    joined,
    make_remedy,
    rank,
)
from kubestow.explain.suggestions.search import OF_KIND_MAX, SUGGESTIONS_MAX
from kubestow.testing import make_node, make_pod

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "suggestions.md"
ROW = re.compile(r"\| `(\w+)` \| (\d+)[^|]* \| (.*) \|")


def test_the_page_has_every_kind_with_its_size_the_smallest_first() -> None:
    text = PAGE.read_text(encoding="utf-8")
    rows = {kind: int(size) for kind, size, _ in ROW.findall(text)}
    assert rows == SIZES
    assert list(rows.values()) == sorted(rows.values())
    more = {kind: what for kind, _, what in ROW.findall(text)}
    assert f"{SYSTEM_TAINT} more" in more["AddToleration"]
    assert f"{WHOLE_RULE} more" in more["DropNodeAffinity"]
    assert f"{NEW_VOLUME} more" in more["ChangeStorageClass"]
    assert f"and {SKEW_STEP} per step" in text
    assert f"At most {SUGGESTIONS_MAX} are shown, and at most {OF_KIND_MAX} of a kind" in text


def test_of_two_changes_of_one_object_the_second_has_both() -> None:
    pod, node = make_pod("p"), make_node("a")
    again = make_node("a", cpu="1")
    first = make_remedy("Uncordon", "do one", pod, objects=(node, make_node("b")))
    second = make_remedy("RemoveTaint", "do another", pod, objects=(again,))
    both = joined(first, second)
    assert [each.metadata.name for each in both.objects] == ["b", "a"]
    assert both.objects[1] is again
    assert (both.kind, both.text) == ("Uncordon+RemoveTaint", "do one, and do another")
    assert both.size == SIZES["Uncordon"] + SIZES["RemoveTaint"]
    assert sorted([both, second, first], key=rank) == [first, second, both]
