"""Writes the generated pages of `docs/reference`: `make reference`."""

from __future__ import annotations

from pathlib import Path

from reference_pages import write_pages

if __name__ == "__main__":
    write_pages(Path(__file__).resolve().parents[2] / "reference")
