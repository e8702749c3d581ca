"""`python -m experiments [--full] [NAME ...]`: run experiments from where they stopped, and write docs/experiments.

Without `--full` the parts are `timing.PARTS`, which together stay under an hour. With it they are `timing.FULL_PARTS`:
the papers' own settings, in unlimited time. Each registry maps a part's name to `module:function`. The function takes no
arguments, stores every long unit under a name in `cache.cached` (so that an interrupted run continues), and writes its
pages with `cache.write_docs`. A part may be in both. The time of each is added up and written to
docs/experiments/timing.md, or to timing-full.md with `--full`.
"""

import argparse

from experiments.timing import FULL_PARTS, PARTS, run_part, write_timing


def main() -> None:
    """Run the named experiments, or all."""
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
    parser.add_argument("--full", action="store_true", help="the papers' full settings, whatever they take")
    parser.add_argument("names", nargs="*", help="which; all of them by default: " + ", ".join({**PARTS, **FULL_PARTS}))
    options = parser.parse_args()
    parts = FULL_PARTS if options.full else PARTS
    unknown = [name for name in options.names if name not in parts]
    if unknown:
        parser.error(f"{unknown[0]} is none of {', '.join(parts)}" + ("" if options.full else " (see --full)"))
    for name in options.names or parts:
        run_part(name, parts[name])
    write_timing(full=options.full)


if __name__ == "__main__":
    main()
