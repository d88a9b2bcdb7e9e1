"""Compiled code on disk: found again, never stale, never damaged, never in the way."""

import random

import pytest
from full_disk import small_files

from fluidcc.folders import compiled_folder, damaged
from fluidcc.packets.hooks import module_from

HALF = """import numba

@numba.njit("float64(float64)", cache=True)
def scaled(x):
    return 0.5 * x
"""
again = module_from.__wrapped__  # as another process does, which has imported nothing yet


def flipped(data):
    place = random.Random(len(data))
    data = bytearray(data)
    for _ in range(3):
        data[place.randrange(len(data))] ^= 1
    return bytes(data)


@pytest.mark.parametrize(
    ("file", "spoil"),
    [
        ("*.py", lambda data: data.replace(b"0.5", b"0.1")),
        ("*.py", lambda data: b""),
        ("__pycache__/*.nbi", lambda data: data[: len(data) // 2]),
        ("__pycache__/*.nbc", lambda data: data[: len(data) // 2]),
        ("__pycache__/*.nbc", flipped),
        ("*.seal", lambda data: data[1:]),
    ],
)
def test_damaged_files_are_made_anew(tmp_path, monkeypatch, file, spoil):
    monkeypatch.setenv("FLUIDCC_CACHE_DIR", str(tmp_path))
    assert again(HALF).scaled(1.0) == 0.5
    (one,) = tmp_path.glob(f"fluidcc/numba*/{file}")
    whole = one.read_bytes()
    one.write_bytes(spoil(whole))
    assert damaged(tmp_path)
    assert again(HALF).scaled(1.0) == 0.5
    assert not damaged(tmp_path)
    if file == "*.py":
        assert one.read_bytes() == whole


def test_a_folder_that_cannot_be_written_is_replaced_with_a_warning(tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("FLUIDCC_CACHE_DIR", str(blocked))
    with pytest.warns(UserWarning, match="FLUIDCC_CACHE_DIR names another folder"):
        folder = compiled_folder("numba")
    assert folder.is_dir()
    assert blocked not in folder.parents


def test_disks_that_are_all_full_are_named_with_a_way_out(tmp_path, monkeypatch):
    monkeypatch.setenv("FLUIDCC_CACHE_DIR", str(tmp_path))
    with (
        small_files(10),
        pytest.warns(UserWarning, match="File too large"),
        pytest.raises(OSError, match=r"TMPDIR .*numba"),
    ):
        again(HALF + "# of which nothing is kept yet\n")
