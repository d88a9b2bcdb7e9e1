"""Compiled code on disk: found again, never stale, never in the way."""

import pytest

from fluidcc.packets.cache import cache_directory, module_from


def test_a_folder_that_cannot_be_written_is_replaced_with_a_warning(tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("FLUIDCC_CACHE_DIR", str(blocked))
    with pytest.warns(UserWarning, match="FLUIDCC_CACHE_DIR names another folder"):
        folder = cache_directory.__wrapped__()
    assert folder.is_dir()
    assert blocked not in folder.parents


def test_modules_are_told_apart_by_text_and_by_what_they_use():
    first = module_from("number = 1\n", uses="a")
    assert module_from("number = 1\n", uses="a") is first
    assert module_from("number = 1\n", uses="b").__name__ != first.__name__
    assert module_from("number = 2\n", uses="a").number == 2
