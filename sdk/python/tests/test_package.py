"""What is installed is whole: built as a wheel, unpacked elsewhere, imported from there."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_the_wheel_has_everything_and_needs_nothing(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*build, "--wheel-dir", str(tmp_path), str(ROOT)], check=True, timeout=120)
    [wheel] = tmp_path.glob("metronome_sdk-*.whl")
    with zipfile.ZipFile(wheel) as packed:
        names = set(packed.namelist())
        [description] = [name for name in names if name.endswith("METADATA")]
        metadata = packed.read(description).decode()
        packed.extractall(tmp_path / "there")
    sources = {f"metronome/{path.name}" for path in (ROOT / "src" / "metronome").iterdir() if path.is_file()}
    assert sources <= names
    assert "metronome/py.typed" in sources
    assert "Requires-Dist" not in metadata
    assert "Requires-Python: >=3.9" in metadata
    code = "import metronome; print(metronome.__file__, metronome.__version__)"
    line = [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(tmp_path / 'there')!r}); {code}"]
    said = subprocess.run(line, capture_output=True, text=True, check=True, timeout=60)
    place, version = said.stdout.split()
    assert place.startswith(str(tmp_path / "there"))
    assert f"Version: {version}\n" in metadata
