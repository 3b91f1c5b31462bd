"""Scripts in results/, which belong to no package, as modules."""

import importlib.util
from pathlib import Path
from types import ModuleType


def load_script(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"{file.parent.name}_{file.stem}", file)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script
