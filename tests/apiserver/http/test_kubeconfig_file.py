"""A context of the server in a kubeconfig file that may have others."""

import os
import stat
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubestow.apiserver.http.kubeconfig_file import KubeconfigFile, kubeconfig
from kubestow.errors import InputError

OTHERS = """\
# my clusters
apiVersion: v1
kind: Config
preferences: {colors: true}
clusters:
- name: work   # the important one
  cluster: {server: https://work.example:6443, certificate-authority-data: QUJD}
users:
- name: me
  user: {token: mine, expires: 2026-01-02}
contexts:
- name: work
  context: {cluster: work, user: me, namespace: shop}
current-context: work
"""


def config(url: str = "https://127.0.0.1:1234", token: str = "secret") -> dict[str, Any]:
    return kubeconfig(url=url, authority=b"PEM", token=token)


def read(path: Path) -> dict[str, Any]:
    return yaml.safe_load(path.read_text())


def names(path: Path, field: str = "contexts") -> list[str]:
    return [one["name"] for one in read(path)[field]]


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_file_is_for_its_owner_only_and_is_removed(tmp_path: Path):
    path = tmp_path / "deep" / "kubeconfig"
    file = KubeconfigFile(path)
    assert not path.parent.exists()
    assert file.add(config()) == "kubestow"
    assert mode(path) == 0o600
    content = read(path)
    assert content["current-context"] == "kubestow"
    assert content["clusters"][0]["cluster"]["certificate-authority-data"] == "UEVN"
    assert content["users"][0]["user"] == {"token": "secret"}
    assert not file.is_merged
    file.remove()
    file.remove()
    assert not path.exists()
    assert not path.parent.exists()


def test_folders_that_were_made_for_it_are_removed(tmp_path: Path):
    for is_ours in (True, False):
        file = KubeconfigFile(tmp_path / "a" / "b" / "kubeconfig")
        file.add(config())
        if not is_ours:
            (tmp_path / "a" / "other").touch()
        file.remove()
        assert (tmp_path / "a").exists() is not is_ours
        assert not (tmp_path / "a" / "b").exists()


def test_a_kubeconfig_gets_one_more_context_and_is_as_before_at_the_end(tmp_path: Path):
    path = tmp_path / "config"
    path.write_text(OTHERS)
    path.chmod(0o640)
    file = KubeconfigFile(path)
    file.add(config())
    assert file.is_merged
    assert names(path) == ["work", "kubestow"]
    content = read(path)
    assert content["current-context"] == "kubestow"
    assert content["preferences"] == {"colors": True}
    before = yaml.safe_load(OTHERS)
    assert content["clusters"][0] == before["clusters"][0]
    assert content["users"][0]["user"] == {"token": "mine", "expires": "2026-01-02"}
    # The token of the server is in it now.
    assert mode(path) == 0o600
    file.remove()
    assert path.read_text() == OTHERS
    assert mode(path) == 0o640


def test_an_empty_file_is_a_kubeconfig_without_entries(tmp_path: Path):
    path = tmp_path / "config"
    path.touch()
    file = KubeconfigFile(path)
    file.add(config())
    assert names(path) == ["kubestow"]
    file.remove()
    assert path.read_text() == ""


def test_changes_of_other_programs_stay(tmp_path: Path):
    path = tmp_path / "config"
    path.write_text(OTHERS)
    file = KubeconfigFile(path)
    file.add(config())
    content = read(path)
    content["contexts"].append({"name": "new", "context": {"cluster": "work", "user": "me"}})
    path.write_text(yaml.safe_dump(content))
    file.remove()
    assert names(path) == ["work", "new"]
    assert names(path, "clusters") == ["work"]
    assert names(path, "users") == ["me"]
    assert read(path)["current-context"] == "work"


def test_the_current_context_stays_if_another_was_chosen(tmp_path: Path):
    path = tmp_path / "config"
    path.write_text(OTHERS)
    file = KubeconfigFile(path)
    file.add(config())
    path.write_text(path.read_text().replace("current-context: kubestow", "current-context: x"))
    file.remove()
    assert read(path)["current-context"] == "x"


def test_a_namespace_chosen_with_kubectl_does_not_keep_our_file(tmp_path: Path):
    path = tmp_path / "config"
    file = KubeconfigFile(path)
    file.add(config())
    content = read(path)
    content["contexts"][0]["context"]["namespace"] = "shop"
    path.write_text(yaml.safe_dump(content))
    file.remove()
    assert not path.exists()


@pytest.mark.parametrize("content", [OTHERS, "precious: data\n", "]["])
def test_a_file_that_became_another_one_stays(tmp_path: Path, content: str):
    path = tmp_path / "config"
    file = KubeconfigFile(path)
    file.add(config())
    path.write_text(content)
    file.remove()
    assert path.read_text() == content


def test_two_servers_share_a_file(tmp_path: Path):
    path = tmp_path / "config"
    first, second = KubeconfigFile(path), KubeconfigFile(path)
    assert first.add(config("https://127.0.0.1:1")) == "kubestow"
    assert second.add(config("https://127.0.0.1:2", "other")) == "kubestow-2"
    assert read(path)["current-context"] == "kubestow-2"
    first.remove()
    assert names(path) == ["kubestow-2"]
    assert read(path)["current-context"] == "kubestow-2"
    second.remove()
    # The context that was current before is gone. The file was there before the second server.
    assert read(path)["current-context"] == ""
    assert names(path) == []


def test_the_file_of_another_server_under_our_name_stays(tmp_path: Path):
    path = tmp_path / "config"
    first = KubeconfigFile(path)
    first.add(config("https://127.0.0.1:1"))
    path.unlink()
    second = KubeconfigFile(path)
    second.add(config("https://127.0.0.1:2", "other"))
    first.remove()
    assert names(path) == ["kubestow"]


def test_a_link_stays_a_link(tmp_path: Path):
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_text(OTHERS)
    link.symlink_to(real)
    file = KubeconfigFile(link)
    file.add(config())
    assert link.is_symlink()
    assert names(real) == ["work", "kubestow"]
    file.remove()
    assert real.read_text() == OTHERS


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        pytest.param("precious: data\n", 'it is not of kind "Config"', id="another-object"),
        pytest.param("kind: Pod\n", 'it is not of kind "Config"', id="another-kind"),
        pytest.param("just text\n", "it is not an object", id="text"),
        pytest.param("kind: Config\nusers: {}\n", '"users" is not a list', id="wrong-type"),
        pytest.param("][", "line 1", id="not-yaml"),
    ],
)
def test_another_file_is_refused_and_not_touched(tmp_path: Path, content: str, problem: str):
    path = tmp_path / "mine.config"
    path.write_text(content)
    with pytest.raises(InputError, match="is not a kubeconfig") as caught:
        KubeconfigFile(path)
    assert problem in str(caught.value)
    assert str(path) in str(caught.value)
    assert path.read_text() == content


def test_places_that_cannot_be_written_are_refused(tmp_path: Path):
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(InputError, match="is a directory; name a file"):
        KubeconfigFile(tmp_path)
    with pytest.raises(InputError, match=r"cannot be written.*Not a directory"):
        KubeconfigFile(file / "below")
    with pytest.raises(InputError, match="not a regular file"):
        KubeconfigFile(Path(os.devnull))


@pytest.mark.skipif(os.geteuid() == 0, reason="permissions do not bind root")
def test_a_directory_without_permission_is_refused(tmp_path: Path):
    tmp_path.chmod(0o500)
    with pytest.raises(InputError, match="Permission denied"):
        KubeconfigFile(tmp_path / "config")
    tmp_path.chmod(0o700)


def test_a_file_that_cannot_be_put_in_order_is_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    path = tmp_path / "config"
    file = KubeconfigFile(path)
    file.add(config())
    path.unlink()
    path.mkdir()
    file.remove()
    assert 'the context "kubestow" stays in' in caplog.text


def killed(file: KubeconfigFile) -> None:
    """As if its process had ended without `remove`."""
    assert file._journal is not None
    file._journal.release()


@pytest.mark.parametrize("original", [OTHERS, None])
def test_the_next_server_takes_out_what_a_killed_one_has_left(tmp_path: Path, original: str | None):
    path = tmp_path / "mine [1]"
    if original is not None:
        path.write_text(original)
        path.chmod(0o640)
    for number in range(3):
        first = KubeconfigFile(path)
        first.add(config(url=f"https://127.0.0.1:{number}"))
        killed(first)
    second = KubeconfigFile(path)
    assert second.add(config()) == "kubestow"
    assert names(path) == (["kubestow"] if original is None else ["work", "kubestow"])
    second.remove()
    if original is None:
        assert not path.exists()
    else:
        assert path.read_text() == original
        assert mode(path) == 0o640
    assert [one for one in tmp_path.iterdir() if one != path] == []


def test_a_change_of_another_program_stays_when_a_killed_one_is_taken_out(tmp_path: Path):
    path = tmp_path / "mine"
    path.write_text(OTHERS)
    first = KubeconfigFile(path)
    first.add(config())
    content = read(path)
    content["contexts"].append({"name": "later", "context": {"cluster": "work", "user": "me"}})
    path.write_text(yaml.safe_dump(content))
    killed(first)
    second = KubeconfigFile(path)
    second.add(config(url="https://127.0.0.1:2"))
    assert names(path) == ["work", "later", "kubestow"]
    second.remove()
    assert names(path) == ["work", "later"]
    assert read(path)["current-context"] == "work"


def test_servers_that_run_are_left_alone(tmp_path: Path):
    path = tmp_path / "mine"
    path.write_text(OTHERS)
    first, second = KubeconfigFile(path), KubeconfigFile(path)
    first.add(config(url="https://127.0.0.1:1"))
    second.add(config(url="https://127.0.0.1:2", token="other"))
    assert names(path) == ["work", "kubestow", "kubestow-2"]
    second.remove()
    first.remove()
    assert path.read_text() == OTHERS


def test_what_is_no_journal_changes_nothing(tmp_path: Path):
    path = tmp_path / "mine"
    path.write_text(OTHERS)
    (tmp_path / ".mine.kubestow-1").write_text("{}")
    (tmp_path / ".mine.kubestow-2").write_bytes(b"[" * 100_000)
    (tmp_path / ".mine.kubestow-3").symlink_to("/etc/passwd")
    file = KubeconfigFile(path)
    file.add(config())
    file.remove()
    assert path.read_text() == OTHERS


def test_what_is_kept_beside_the_file_is_for_its_owner_alone(tmp_path: Path):
    path = tmp_path / "mine"
    path.write_text(OTHERS)
    file = KubeconfigFile(path)
    file.add(config())
    (journal,) = (one for one in tmp_path.iterdir() if one != path)
    assert mode(journal) == 0o600
    file.remove()
    assert not journal.exists()
