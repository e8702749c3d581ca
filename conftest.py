"""Modules that need an extra are collected only where it is installed."""

from importlib.util import find_spec

collect_ignore = [
    path
    for path, needs in {"src/confide/torch.py": "torch", "src/confide/array_api.py": "array_api_compat"}.items()
    if find_spec(needs) is None
]
if find_spec("torch") is not None and find_spec("array_api_compat") is None:
    collect_ignore.append("src/confide/torch.py")
