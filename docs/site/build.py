#!/usr/bin/env python3
"""Builds the documentation site: scripts/site, or the target `site`, calls this.

Pages come from the Markdown that navigation.json lists, the reference from the public headers
(through Doxygen) and the Python module. A document that is not listed, and a link that leads
nowhere, stop the build.
"""

import argparse
import html
import json
import re
import shutil
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from pygments.formatters import HtmlFormatter

import doxygen
import reference
from pages import Page, source_name, source_page

HERE = Path(__file__).parent


class Site:
    def __init__(self, source, output, sections):
        self._source = Path(source)
        self._output = Path(output)
        self._sections = sections  # title → {document or page: its name}
        self._template = (HERE / "template.html").read_text()
        self.index = []
        documents = [path for pages in self._sections.values() for path in pages]
        self._pages = {path: Page(source, path) for path in documents if path.endswith(".md")}
        titles = {page.name: page.title for page in self._pages.values()}
        for page in self._pages.values():
            page.name_links(titles)
        self._check()

    def _check(self):
        """Every document is listed, every anchor is there."""
        there = {f"docs/{path.name}" for path in (self._source / "docs").glob("*.md")}
        if missing := there - self._pages.keys():
            raise SystemExit(f"navigation.json does not list {', '.join(sorted(missing))}")
        for page in self._pages.values():
            for path, anchor in page.links:
                if not path.endswith(".md"):
                    continue
                if path not in self._pages:
                    raise SystemExit(f"{page.path} links to {path}, which navigation.json lacks")
                if anchor and anchor not in self._pages[path].anchors():
                    raise SystemExit(f"{page.path} links to {path}#{anchor}, which is not there")

    def navigation(self, base, current=None):
        """The sections, with the headings of the current page below its name."""
        parts = []
        for section, entries in self._sections.items():
            parts.append(f"<h2>{html.escape(section)}</h2>\n<ul>")
            for path, title in entries.items():
                page = self._pages.get(path)
                name = page.name if page else path
                mark = ' aria-current="page"' if name == current else ""
                parts.append(f'<li><a href="{base}{name}"{mark}>{html.escape(title)}</a>')
                if page and name == current:
                    parts.append(self._outline(page))
                parts.append("</li>")
            parts.append("</ul>")
        return "\n".join(parts)

    @staticmethod
    def _outline(page):
        items = [
            f'<li><a href="#{anchor}">{html.escape(text)}</a></li>'
            for level, text, anchor in page.headings
            if level == 2
        ]
        return f"<ul>{''.join(items)}</ul>" if items else ""

    def framed(self, title, body, base="", kind="page", current=None):
        return self._template.format(
            title=title, base=base, kind=kind, body=body, navigation=self.navigation(base, current)
        )

    def write(self, name, title, body, kind="page"):
        path = self._output / name
        path.parent.mkdir(parents=True, exist_ok=True)
        base = "../" * name.count("/")
        heading = html.escape(title if title == "sotto" else f"{title} – sotto")
        path.write_text(self.framed(heading, body, base, kind, name))

    def write_documents(self):
        linked = set()
        for page in self._pages.values():
            self.write(page.name, page.title, page.html())
            for image in page.images:
                shutil.copy(self._source / image, self._output)
            linked |= {path for path, _ in page.links if not path.endswith(".md")}
            for level, text, anchor in page.headings:
                if level <= 3:
                    url = page.name + (f"#{anchor}" if level > 1 else "")
                    self.index.append([text, url, "" if level == 1 else page.title])
        for path in sorted(linked):
            if (self._source / path).is_file():
                self.write(source_name(path), *source_page(self._source, path), kind="source")

    def write_fixed(self):
        for name in ("style.css", "search.js"):
            shutil.copy(HERE / name, self._output)
        light = HtmlFormatter(style="default").get_style_defs("pre.code")
        dark = HtmlFormatter(style="native").get_style_defs("pre.code")
        style = f"{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n"
        (self._output / "code.css").write_text(style)
        entries = json.dumps(self.index, ensure_ascii=False, separators=(",", ":"))
        (self._output / "index.js").write_text(f"window.sottoIndex={entries};\n")

    def frame_for_doxygen(self, folder):
        """Doxygen's header and footer: the template, cut where the body goes."""
        framed = self.framed("$title", "\0", "../", "api", None)
        top, bottom = framed.split("\0")
        # Doxygen closes an element of its own header.
        (folder / "top.html").write_text(top + '<div id="top">\n')
        (folder / "bottom.html").write_text(bottom)


def mend_reference(folder):
    """Drops what Doxygen writes and the site does not use, and links of its that lead nowhere."""
    for file in folder.iterdir():
        if file.suffix != ".html" or file.name.endswith("-members.html"):
            file.unlink()
    for page in folder.glob("*.html"):
        text = page.read_text()

        def summary(found, text=text):
            links = re.findall(r'<a href="#([^"]*)">[^<]*</a>', found[0])
            there = [link for link in links if f'id="{link}"' in text]
            parts = re.findall(r'<a href="#(?:%s)">[^<]*</a>' % "|".join(there), found[0])
            return f'<div class="summary">{" · ".join(parts if there else [])}</div>'

        text = re.sub(r'<div class="summary">.*?</div>', summary, text, flags=re.DOTALL)
        text = re.sub(r'<a href="file:[^"]*">([^<]*)</a>', r"\1", text)
        text = re.sub(r' onclick="javascript:toggleInherit[^"]*"><img [^>]*>', ">", text)
        text = re.sub(r'<h2 class="groupheader"> *</h2>', "", text)
        page.write_text(text)


def tagged(tagfile):
    """Symbols of Doxygen's tag file as entries of the index."""
    for compound in ElementTree.parse(tagfile).getroot():
        kind, name = compound.get("kind"), compound.findtext("name")
        if kind in ("class", "struct", "file"):
            yield [name, f"reference/{compound.findtext('filename')}", kind]
        for member in compound.findall("member"):
            if member.get("kind") in ("function", "typedef", "enumeration", "variable", "define"):
                scope = "" if kind == "file" else f"{name}::"
                url = f"reference/{member.findtext('anchorfile')}#{member.findtext('anchor')}"
                yield [scope + member.findtext("name"), url, member.get("kind")]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--source", required=True, help="the repository")
    parser.add_argument("--headers", required=True, help="file that lists the public headers")
    parser.add_argument("--output", required=True, help="folder to write; what it holds goes")
    parser.add_argument("--doxygen", default="doxygen")
    arguments = parser.parse_args()
    output = Path(arguments.output)
    if output.exists() and not (output / "index.js").exists() and any(output.iterdir()):
        raise SystemExit(f"{output} holds something that is no site; it is left alone")
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)

    headers = Path(arguments.headers).read_text().split()
    site = Site(arguments.source, output, json.loads((HERE / "navigation.json").read_text()))
    site.write_documents()
    work = output.with_name(output.name + "-work")
    frame = output.with_name(output.name + "-frame")
    frame.mkdir(exist_ok=True)
    site.frame_for_doxygen(frame)
    settings = {"HTML_HEADER": frame / "top.html", "HTML_FOOTER": frame / "bottom.html"}
    warnings = doxygen.run(arguments.doxygen, arguments.source, headers, work, settings)
    print("\n".join(warnings))
    shutil.copytree(work / "reference", output / "reference")
    mend_reference(output / "reference")
    site.index += tagged(work / "sotto.tag")
    for name, title, body in reference.pages(Path(arguments.source), headers, work / "sotto.tag"):
        site.write(name, title, body)
    site.write_fixed()
    print(f"site: {output / 'index.html'}")


if __name__ == "__main__":
    main()
