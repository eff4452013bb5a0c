"""Markdown as pages of the site. Links work as they do in a repository browser, or stop the build."""

import html
import os
import re
from pathlib import Path, PurePosixPath
from urllib.parse import urldefrag

from markdown_it import MarkdownIt
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name, get_lexer_for_filename
from pygments.util import ClassNotFound

LANGUAGES = {"haproxy": None, "sh": "console", "csv": None, "text": None, "": None}


def page_name(path):
    """Where a document of the repository lies on the site."""
    if path == "README.md":
        return "index.html"
    if path.endswith("README.md"):
        return path.removesuffix("README.md").strip("/").replace("/", "-") + ".html"
    return PurePosixPath(path).stem.lower() + ".html"


def source_name(path):
    return "source/" + path.replace("/", "-") + ".html"


def slug(text):
    """The anchor that repository browsers give a heading."""
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")


def plain(inline):
    """The text of a heading without its markup."""
    return "".join(child.content for child in inline.children if child.content)


def coloured(code, language):
    name = LANGUAGES.get(language, language)
    if not name:
        return f"<pre><code>{html.escape(code)}</code></pre>\n"
    if name == "console":
        name = "bash"
    lexer = get_lexer_by_name(name)
    inner = highlight(code, lexer, HtmlFormatter(nowrap=True))
    return f'<pre class="code"><code>{inner}</code></pre>\n'


class Page:
    """One document: its title, its headings (level, text, anchor) and its HTML."""

    def __init__(self, root, path):
        self.path = path
        self.name = page_name(path)
        self.headings = []
        self.links = []  # (path in the repository, anchor)
        self.images = []
        self._root = Path(root)
        parser = MarkdownIt("commonmark", {"html": True, "typographer": False})
        parser.enable(["table", "strikethrough"])
        parser.options["highlight"] = None
        self._tokens = parser.parse((self._root / path).read_text())
        self._parser = parser
        self._name_headings()
        self._resolve_links()
        self.title = self.headings[0][1] if self.headings else path

    def html(self):
        body = self._parser.renderer.render(self._coloured(), self._parser.options, {})
        # Wide tables scroll by themselves, not the page.
        body = body.replace("<table>", '<div class="table"><table>')
        return body.replace("</table>", "</table></div>")

    def name_links(self, titles):
        """Links that show a document's path, as in a repository, show its title instead."""
        for token in self._tokens:
            children = token.children or []
            for link, text in zip(children, children[1:]):
                if link.type == "link_open" and re.fullmatch(r"[\w./-]+\.md", text.content):
                    text.content = titles.get(link.attrGet("href").split("#")[0], text.content)

    def anchors(self):
        text = (self._root / self.path).read_text()
        written = re.findall(r'<a id="([^"]+)">', text)
        return {anchor for _, _, anchor in self.headings} | set(written)

    def _name_headings(self):
        seen = {}
        for position, token in enumerate(self._tokens):
            if token.type != "heading_open":
                continue
            text = plain(self._tokens[position + 1])
            anchor = slug(text)
            count = seen[anchor] = seen.get(anchor, -1) + 1
            anchor += f"-{count}" if count else ""
            token.attrSet("id", anchor)
            self.headings.append((int(token.tag[1]), text, anchor))

    def _resolve_links(self):
        for token in self._tokens:
            for child in token.children or []:
                if child.type == "link_open":
                    child.attrSet("href", self._resolved(child.attrGet("href")))
                elif child.type == "image":
                    image = self._in_repository(child.attrGet("src"))
                    self.images.append(image)
                    child.attrSet("src", PurePosixPath(image).name)

    def _in_repository(self, link):
        path = os.path.normpath(PurePosixPath(self.path).parent / link)
        if path.startswith("..") or not (self._root / path).exists():
            raise SystemExit(f"{self.path} links to {link}, which is not there")
        return path

    def _resolved(self, link):
        if re.match(r"[a-z]+:", link):
            return link
        target, anchor = urldefrag(link)
        path = self._in_repository(target) if target else self.path
        self.links.append((path, anchor))
        name = page_name(path) if path.endswith(".md") else source_name(path)
        return name + ("#" + anchor if anchor else "")

    def _coloured(self):
        for token in self._tokens:
            if token.type == "fence":
                token.type, token.content = "html_block", coloured(token.content, token.info.strip())
        return self._tokens


def source_page(root, path):
    """(title, HTML) of a file that a document links to."""
    text = (Path(root) / path).read_text()
    try:
        lexer = get_lexer_for_filename(path.removesuffix(".h") + ".cc" if path.endswith(".h") else path)
    except ClassNotFound:
        lexer = get_lexer_by_name("text")
    inner = highlight(text, lexer, HtmlFormatter(nowrap=True))
    title = html.escape(path)
    return path, f'<h1><code>{title}</code></h1>\n<pre class="code"><code>{inner}</code></pre>\n'
