"""Pages that are made of comments: the list of headers, the algorithms, the Python module."""

import ast
import html
import re
import xml.etree.ElementTree as ElementTree

from headers import opening_comment, paragraphs

FOLDERS = {
    "trainers": "What a training program holds: the optimizer, its driver, tasks, models, data",
    "optim": "Algorithms, and what they are built of",
    "compress": "Compressors",
    "topology": "Graphs and their weights",
    "sites": "Sites that come and go, in a process and in virtual time",
    "study": "Scenarios, simulated runs and plans",
    "observe": "A run's figures for dashboards",
    "comm": "Transports, and where nodes meet",
    "sim": "The simulator",
    "groups": "Programs of groups of nodes, and what these exchange",
    "kernels": "Vector operations",
    "base": "Errors, bytes, random numbers",
    "bindings": "C",
}


def linked(text):
    """Escapes a text; what stands in backticks is code, papers lead to where they are."""
    text = html.escape(text, quote=False)
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", text)
    return re.sub(
        r"arXiv:(\d{4}\.\d{4,5})", r'<a href="https://arxiv.org/abs/\1">arXiv:\1</a>', text
    )


def comment_html(lines):
    parts = []
    for paragraph, laid_out in paragraphs(lines):
        tag = ('<pre class="rule">', "</pre>") if laid_out else ("<p>", "</p>")
        parts.append(tag[0] + linked("\n".join(paragraph)) + tag[1])
    return "\n".join(parts).replace('</pre>\n<pre class="rule">', "\n\n")


def first_sentence(lines):
    text = " ".join(next(paragraphs(lines))[0])
    return re.split(r"(?<=[^.].)(?<=\.)\s+(?=[A-Z`])|:$", text)[0]


def addresses(tagfile):
    """Header → its page of the reference; also the page of the class that it is named after."""
    files, classes = {}, {}
    for compound in ElementTree.parse(tagfile).getroot():
        if compound.get("kind") == "file":
            path = (compound.findtext("path") or "") + compound.findtext("name")
            files[path.split("include/")[-1]] = compound.findtext("filename")
        elif compound.get("kind") in ("class", "struct"):
            classes[compound.findtext("name")] = compound.findtext("filename")
    return files, classes


def header_list(source, headers, files):
    parts = ["<h1>C++ and C headers</h1>"]
    parts.append(
        "<p>What <code>cmake --install</code> installs. Include "
        "<code>&lt;sotto/trainers/optimizer.h&gt;</code> first: a training program needs little "
        "else. From C: <code>&lt;sotto.h&gt;</code>.</p>"
    )
    for folder, title in FOLDERS.items():
        inside = sorted(header for header in headers if header.startswith(folder + "/"))
        if not inside:
            continue
        parts.append(f'<h2 id="{folder}">{html.escape(title)}</h2>\n<div class="table"><table>')
        for header in inside:
            name = "sotto.h" if folder == "bindings" else f"sotto/{header}"
            says = linked(first_sentence(opening_comment((source / header).read_text())))
            page = f"reference/{files[name]}"
            shown = header.removeprefix("bindings/c/")
            parts.append(f'<tr><td><a href="{page}"><code>{shown}</code></a></td><td>{says}</td></tr>')
        parts.append("</table></div>")
    return "\n".join(parts)


def algorithm_pages(source, headers, files):
    rows = []
    inside = sorted(header for header in headers if header.startswith("optim/algorithms/"))
    for header in inside:
        lines = opening_comment((source / header).read_text())
        title, _, says = first_sentence(lines).partition(": ")
        if not says:
            title, says = header.split("/")[-1].removesuffix(".h").replace("_", " "), title
        name = f"algorithm-{header.split('/')[-1].removesuffix('.h').replace('_', '-')}.html"
        page = f'reference/{files["sotto/" + header]}'
        body = (
            f"<h1>{linked(title)}</h1>\n{comment_html(lines)}\n"
            f'<p><a href="{page}">In C++</a> · <a href="algorithms.html">beside the others</a> · '
            f'<a href="catalogue.html">all</a></p>'
        )
        rows.append(f'<tr><td><a href="{name}">{linked(title)}</a></td><td>{linked(says)}</td></tr>')
        yield name, re.sub("<[^>]*>", "", title), body
    yield (
        "catalogue.html",
        "Each algorithm's page",
        "<h1>Each algorithm's page</h1>\n<p>What its header says: paper, rule, assumptions, memory "
        "and bytes. <a href=\"algorithms.html\">Which to use when</a> is told elsewhere, with "
        'measurements.</p>\n<div class="table"><table>' + "\n".join(rows) + "</table></div>",
    )


def public_python(source):
    """What `import sotto` offers: (name, node of its definition), and the module's text."""
    folder = source / "bindings/python/sotto"
    module = ast.parse((folder / "__init__.py").read_text())
    names = []
    for node in module.body:
        if isinstance(node, ast.Assign) and node.targets[0].id == "__all__":
            names = ast.literal_eval(node.value)
    definitions = {}
    for file in sorted(folder.glob("*.py")):
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
                definitions.setdefault(node.name, node)
            if file.name == "torch.py" and isinstance(node, (ast.ClassDef, ast.FunctionDef)):
                if not node.name.startswith("_"):
                    names.append(f"torch.{node.name}")
                    definitions[f"torch.{node.name}"] = node
    public = [(name, definitions[name]) for name in names if name in definitions]
    return public, ast.get_docstring(module)


def public_members(node):
    for member in getattr(node, "body", []):
        if isinstance(member, ast.FunctionDef):
            if not member.name.startswith("_") or member.name == "__init__":
                yield member


def signature(node):
    arguments = re.sub(r"^self(, )?", "", ast.unparse(node.args))
    returns = "None" if node.returns is None else ast.unparse(node.returns)
    return f"({arguments})" + ("" if returns == "None" else f" -> {returns}")


def python_page(source):
    public, text = public_python(source)
    parts = ["<h1>Python module</h1>", comment_html(text.splitlines())]
    for name, node in public:
        call = signature(node) if isinstance(node, ast.FunctionDef) else ""
        parts.append(f'<h2 id="{name}"><code>{html.escape("sotto." + name + call)}</code></h2>')
        parts.append(comment_html((ast.get_docstring(node) or "").splitlines()))
        for member in public_members(node):
            shown = name.split(".")[-1] if member.name == "__init__" else member.name
            says = ast.get_docstring(member)
            if not says:
                continue
            kinds = {getattr(mark, "id", "") for mark in member.decorator_list}
            call = "" if "property" in kinds else signature(member)
            parts.append(f"<h3><code>{html.escape(shown + call)}</code></h3>")
            parts.append(comment_html(says.splitlines()))
    return "\n".join(parts)


def pages(source, headers, tagfile):
    """Yields (file, title, body)."""
    files, _ = addresses(tagfile)
    yield "reference.html", "C++ and C headers", header_list(source, headers, files)
    yield "python.html", "Python module", python_page(source)
    yield from algorithm_pages(source, headers, files)
