"""Rewrite the golden texts and list those that changed: `python -m tests.golden`."""

from tests.golden import FOLDER, texts


def main() -> None:
    """Write every text that differs from its file, and remove the files of removed texts."""
    made = {f"{name}.txt": make() for name, make in texts().items()}
    for gone in sorted(path for path in FOLDER.glob("*.txt") if path.name not in made):
        gone.unlink()
        print(f"removed {gone}")
    for name, text in made.items():
        place = FOLDER / name
        if not place.exists() or place.read_text(encoding="utf-8") != text:
            place.write_text(text, encoding="utf-8")
            print(f"wrote {place}")


if __name__ == "__main__":
    main()
