"""Sphinx settings of the documentation. Build the site with `make docs`."""

import importlib.metadata
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "docs" / "_ext")]

project = "Countersign"
author = "The Countersign contributors"
copyright = author  # Sphinx reads this name
release = importlib.metadata.version("countersign-bot")
language = "en"

extensions = [
    "myst_parser",  # Markdown
    "sphinx.ext.autodoc",  # docs/reference/python-api
    "sphinx.ext.napoleon",  # Google docstrings
    "sphinx_copybutton",  # copy a block without its prompts
    "repository_links",
    "diagrams",
    "reference",
]
exclude_patterns = ["_build", "_ext"]
suppress_warnings = []  # stays empty
nitpicky = False  # MyST warns of broken links anyway; nitpicky adds 522 foreign types

myst_enable_extensions = ["attrs_block", "colon_fence", "deflist"]
myst_heading_anchors = 3  # the same anchors as in the repository's own view
myst_fence_as_directive = ["mermaid"]

autodoc_member_order = "bysource"
autodoc_typehints = "description"
napoleon_use_ivar = True  # fields in the text of their class, without targets of their own
default_role = "code"  # single backticks in docstrings are code

html_theme = "furo"
html_title = "Countersign"
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {"navigation_with_keys": True}  # fonts are the system's; nothing is loaded
copybutton_prompt_text = r"\$ |>>> "
copybutton_prompt_is_regexp = True
linkcheck_ignore = [r"http://127\.0\.0\.1.*"]
linkcheck_anchors = False

repository_root = str(ROOT)
repository_url = ""  # the release workflow sets it; without it, links are shown as code
