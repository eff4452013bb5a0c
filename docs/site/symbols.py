#!/usr/bin/env python3
"""Fails when a public symbol has no documentation, or when Doxygen warns of what is there.

Public is what an installed header declares, outside of namespaces called `internal` or `detail` and
of private parts. Each such symbol needs a comment of its own, except
- the type that a header is named after: the header's opening comment is its own;
- what overrides a documented function;
- fields and enumerators of a documented type, whose comment says what they are together;
- destructors, constructors without arguments, what copies, moves or compares, and what is deleted;
- accessors: functions without arguments that the header defines as `{ return … }` in one line, which
  say by their body what they give.
"""

import argparse
import re
import shutil
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import doxygen
import reference

COMPARISONS = ("operator==", "operator!=", "operator<=>", "operator=")


def documented(element):
    tags = ("briefdescription", "detaileddescription", "inbodydescription")
    parts = (element.find(tag) for tag in tags)
    return any("".join(part.itertext()).strip() for part in parts if part is not None)


class Symbols:
    """What the XML of one run of Doxygen has."""

    def __init__(self, work):
        self._lines = {}
        self._stage = Path(work).resolve() / "include"
        self._members = {}  # id → (member, the compound that it stands in)
        self._types = []
        for path in sorted((Path(work) / "xml").glob("*.xml")):
            for compound in ElementTree.parse(path).getroot().findall("compounddef"):
                if compound.get("kind") in ("class", "struct", "union"):
                    self._types.append(compound)
                if compound.get("kind") in ("class", "struct", "union", "namespace", "file"):
                    for member in compound.iter("memberdef"):
                        self._members.setdefault(member.get("id"), (member, compound))

    def undocumented(self):
        """`header:line: name`, sorted."""
        found = [self._place(kind, kind.findtext("compoundname")) for kind in self._types
                 if self._needs_comment(kind.findtext("compoundname"), kind)]
        for member, compound in self._members.values():
            if compound.get("prot") == "private":
                continue
            name = member.findtext("name") or ""
            scope = compound.findtext("compoundname") if compound.get("kind") != "file" else ""
            if self._needs_comment(f"{scope}::{name}", member) and not self._exempt(member, compound):
                shown = f"{scope}::{name}" if scope else name
                found.append(self._place(member, shown + (member.findtext("argsstring") or "")))
        return sorted(set(found))

    @staticmethod
    def _needs_comment(name, element):
        hidden = re.search(r"(^|::)(internal|detail)(::|$)", name)
        private = element.get("prot") == "private" or "::@" in name
        return not (hidden or private or documented(element))

    def _exempt(self, member, compound):
        kind, name = member.get("kind"), member.findtext("name") or ""
        arguments = member.findtext("argsstring") or ""
        own = (compound.findtext("compoundname") or "").split("::")[-1].split("<")[0].strip()
        in_type = compound.get("kind") in ("class", "struct", "union")
        if member.find("reimplements") is not None:
            return documented(self._root(member))
        if kind in ("variable", "friend") and in_type:
            return True
        if name.startswith("~") or name in COMPARISONS or arguments.endswith("=delete"):
            return True
        if in_type and name == own:
            # Of itself, or of nothing.
            return re.match(rf"\((const )?({own} ?&&?.*)?\)", arguments) is not None
        return kind == "function" and arguments.startswith("()") and self._returns(member)

    def _root(self, member):
        """The function that was declared first; the member itself where it is elsewhere."""
        base = member.find("reimplements")
        while base is not None and base.get("refid") in self._members:
            member = self._members[base.get("refid")][0]
            if documented(member):
                break
            base = member.find("reimplements")
        return member

    def _returns(self, member):
        place = member.find("location")
        lines = self._lines_of(place.get("file"))
        text = lines[int(place.get("line")) - 1]
        return re.search(r"\{ return [^;]*; \}", text) is not None

    def _lines_of(self, name):
        path = Path(name) if Path(name).is_absolute() else self._stage / name
        if path not in self._lines:
            self._lines[path] = path.read_text().splitlines()
        return self._lines[path]

    def _place(self, element, name):
        place = element.find("location")
        header = str(place.get("file")).replace(f"{self._stage}/", "").removeprefix("sotto/")
        return f"{header}:{place.get('line')}: {name}"


def undocumented_python(source):
    public, _ = reference.public_python(source)
    for name, node in public:
        for member in [node, *reference.public_members(node)]:
            if member is not node and member.name == "__init__":
                continue
            if not reference.ast.get_docstring(member):
                yield f"bindings/python: {name}" + ("" if member is node else f".{member.name}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--source", required=True, help="the repository")
    parser.add_argument("--headers", required=True, help="file that lists the public headers")
    parser.add_argument("--doxygen", default="doxygen")
    arguments = parser.parse_args()
    work = Path(tempfile.mkdtemp(prefix="sotto-symbols-"))
    try:
        headers = Path(arguments.headers).read_text().split()
        settings = {"GENERATE_HTML": "NO"}
        warnings = doxygen.run(arguments.doxygen, arguments.source, headers, work, settings)
        missing = Symbols(work).undocumented()
    finally:
        shutil.rmtree(work, ignore_errors=True)
    if Path(arguments.source, "bindings/python").is_dir():
        missing += undocumented_python(Path(arguments.source))
    for line in warnings:
        print(f"Doxygen: {line}")
    for line in missing:
        print(f"no documentation: {line}")
    print(f"{len(headers)} headers, {len(missing)} symbols without documentation, "
          f"{len(warnings)} warnings")
    sys.exit(1 if missing or warnings else 0)


if __name__ == "__main__":
    main()
