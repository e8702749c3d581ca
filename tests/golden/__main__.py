"""Write the golden texts anew, and say which changed: `python -m tests.golden`."""

from tests.golden import FOLDER, texts


def main() -> None:
    """Write every text that is another than its file, and remove the files of texts that are gone."""
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
