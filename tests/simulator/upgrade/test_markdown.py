"""The report as Markdown: texts of a cluster stay texts."""

from kubestow.simulator.upgrade.markdown import markdown
from kubestow.simulator.upgrade.report import Effect, UpgradeFinding, UpgradeReport


def test_texts_of_objects_make_no_markup() -> None:
    finding = UpgradeFinding(
        effect=Effect.NOTE, where="Pod a\\| b", text="![x](http://y) <img src=z>\n| c | d |"
    )
    report = UpgradeReport(
        before="v1.36", after="v1.37", compared=0, differing=0, objects=(finding,)
    )
    (row,) = [line for line in markdown(report).splitlines() if "img" in line]
    assert row.count(" | ") == 3  # four columns
    assert r"Pod a\\\| b" in row
    assert r"!\[x\](http:&#8203;//y) \<img src=z\>" in row


def test_a_search_that_found_nothing_is_reported() -> None:
    report = UpgradeReport(before="v1.36", after="v1.37", compared=0, differing=0, searched=2)
    assert "\nSearched 2 files: no name in them differs.\n" in markdown(report)
