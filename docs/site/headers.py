"""Public headers as Doxygen reads them.

A header of this project opens with a comment that says what it is for. Doxygen does not take it for
documentation, so a copy is made in which it is: of the file, and of the type that the file is named
after, unless that type has a comment of its own. Lines keep their numbers.
"""

import re
from pathlib import Path


def opening_comment(text):
    """The lines of the comment that a header begins with, without their slashes."""
    lines = []
    for line in text.splitlines():
        if not line.startswith("//"):
            break
        lines.append(line[2:].removeprefix(" ").rstrip())
    return lines


def paragraphs(lines):
    """Splits at empty lines. Yields (lines, laid_out): whether indentation means something."""
    paragraph = []
    for line in [*lines, ""]:
        if line:
            paragraph.append(line)
        elif paragraph:
            yield paragraph, any(part.startswith(" ") for part in paragraph)
            paragraph = []


def as_documentation(lines):
    """What Doxygen shows as the comment was written: laid-out paragraphs keep their lines."""
    parts = []
    for paragraph, laid_out in paragraphs(lines):
        text = "\n".join(paragraph)
        if laid_out:
            text = f"@verbatim\n{text}\n@endverbatim"
        else:
            text = re.sub(r"([\\<>@]|(?<!\w)(?:::|#))", r"\\\1", text)
            # A paper's, not the class of that name.
            text = re.sub(r"\bAlgorithm(?= \d)", "%Algorithm", text)
        parts.append(text)
    return "\n\n".join(parts)


def key(name):
    return name.replace("_", "").lower()


def namesake(text, stem):
    """The type that a header is named after and that has no comment: (kind, qualified name)."""
    namespaces = []
    before = ""
    for line in text.splitlines():
        if found := re.match(r"namespace ([\w:]+) {", line):
            namespaces.append(found[1])
        elif line.startswith("}  // namespace "):
            namespaces.pop()
        elif found := re.match(r"(class|struct) (\w+)(?: final)?(?: :.*)? {", line):
            commented = before.lstrip().startswith("//")
            if key(found[2]) == key(stem) and not commented:
                return found[1], "::".join([*namespaces, found[2]])
        before = line
    return None


def c_documentation(text):
    """C99 has one kind of line comment: those before and behind a declaration document it."""
    lines = text.split("\n")
    for number, line in enumerate(lines):
        following = next((later for later in lines[number:] if not later.startswith("// ")), "")
        if line.startswith("// ") and not line.startswith("// ---") and following:
            lines[number] = "/" + line
        elif not line.startswith(("}", "#")):
            lines[number] = re.sub(r"(?<=\S)(\s+)// ", r"\1///< ", line)
    # A comment that continues behind the next lines.
    for number in range(1, len(lines)):
        if re.match(r"\s{8,}// ", lines[number]) and "///<" in lines[number - 1]:
            lines[number] = lines[number].replace("// ", "///< ", 1)
    return "\n".join(lines)


def staged(text, name):
    """The copy of the header `name` that Doxygen reads."""
    comment = opening_comment(text)
    body = text.split("\n")
    body[: len(comment)] = [""] * len(comment)
    body = "\n".join(body)
    if name == "sotto.h":
        body = c_documentation(body)
    documentation = as_documentation(comment)
    parts = [f"\n/** @file {name}\n\n{documentation}\n*/\n"]
    if found := namesake(text, Path(name).stem):
        parts.append(f"\n/** @{found[0]} {found[1]}\n\n{documentation}\n*/\n")
    return body + "".join(parts)


def stage(source, headers, folder):
    """Writes the copies below `folder`; headers are paths below `source`."""
    for header in headers:
        name = "sotto.h" if header == "bindings/c/sotto.h" else f"sotto/{header}"
        copy = Path(folder) / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(staged((Path(source) / header).read_text(), name))
