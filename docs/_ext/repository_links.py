"""Link to files of the repository that are outside docs/, and check that they exist.

`[text](../../bot/main.py)` works in the repository's own view. This transform makes the same link
work in the site. Without `repository_url`, the site shows the path as code.
"""

from __future__ import annotations

from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging

logger = logging.getLogger(__name__)


class RepositoryLinks(SphinxPostTransform):
    """Resolves links before MyST reports them as missing."""

    default_priority = 8  # MyST's resolver has 9, and emits no event for unknown targets

    def run(self, **_: object) -> None:
        """Resolve every link of the page that leaves the documentation directory."""
        page = Path(self.env.doc2path(self.env.docname))
        docs, root = Path(self.env.srcdir).resolve(), Path(self.config.repository_root).resolve()
        for link in list(self.document.findall(addnodes.pending_xref)):
            path, _, place = link["reftarget"].partition("#")
            target = (page.parent / path).resolve()
            if link["reftype"] != "myst" or not path or target.is_relative_to(docs):
                continue
            if not target.exists():  # MyST takes the suffix of pages away
                target = target.with_name(f"{target.name}.md")
            if not target.is_relative_to(root) or not target.exists():
                logger.warning("no such file in the repository: %s", path, location=link)
            name = target.relative_to(root).as_posix() if target.is_relative_to(root) else path
            link.replace_self(self._shown(link, name, place, is_folder=target.is_dir()))

    def _shown(
        self, link: addnodes.pending_xref, name: str, place: str, *, is_folder: bool
    ) -> nodes.Node:
        """Build the link, or the path as code if the repository has no address."""
        if not self.config.repository_url:
            return nodes.literal(name, name)
        kind = "tree" if is_folder else "blob"
        anchor = f"#{place}" if place else ""
        uri = f"{self.config.repository_url}/{kind}/v{self.config.release}/{name}{anchor}"
        reference = nodes.reference("", "", internal=False, refuri=uri)
        reference.extend(child.deepcopy() for child in link.children)
        return reference


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the transform and its settings."""
    app.add_config_value("repository_root", "", "env")
    app.add_config_value("repository_url", "", "env")
    app.add_post_transform(RepositoryLinks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
