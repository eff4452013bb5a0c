"""The documentation site: what it must refuse, and whether its links lead somewhere.

  site_test.py --source DIR --headers FILE --doxygen PROGRAM [unittest's own arguments]
"""

import argparse
import html.parser
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from urllib.parse import unquote, urldefrag

ARGUMENTS = None

GAPS = """// What a header is for.
#pragma once
namespace sotto {
class Gaps {
 public:
  Gaps();
  Gaps(const Gaps&) = delete;
  explicit Gaps(int size);
  ~Gaps();
  bool operator==(const Gaps&) const = default;
  int size() const { return size_; }
  virtual int area() const;
  void change(int by);
  /// Documented.
  void grow();

 private:
  void hidden();
  int size_ = 0;
};
struct Other {
  int a = 0;
};
/// Documented.
struct Third : Gaps {
  int b = 0;
  int area() const override;
};
enum class Kind { one, two };
/// Documented.
enum class Sort { one, two };
int function(int argument);
using Alias = int;
inline constexpr int kLimit = 3;
namespace internal {
void inside();
}  // namespace internal
}  // namespace sotto
"""
MISSING = {
    "sotto::Gaps::Gaps(int size)", "sotto::Gaps::area() const", "sotto::Third::area() const override",
    "sotto::Gaps::change(int by)", "sotto::Other", "sotto::Kind",
    "sotto::function(int argument)", "sotto::Alias", "sotto::kLimit",
}  # fmt: skip


def run(script, *arguments):
    command = [sys.executable, str(ARGUMENTS.source / "docs/site" / script), "--doxygen", ARGUMENTS.doxygen]
    return subprocess.run([*command, *arguments], text=True, capture_output=True, check=False)


def check(header):
    """Runs the check of docstrings over one header."""
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        (folder / "base").mkdir()
        (folder / "base/gaps.h").write_text(header)
        (folder / "headers.txt").write_text("base/gaps.h\n")
        return run("symbols.py", "--source", str(folder), "--headers", str(folder / "headers.txt"))


class Symbols(unittest.TestCase):
    def test_all_public_symbols_are_documented(self):
        result = run(
            "symbols.py", "--source", str(ARGUMENTS.source), "--headers", str(ARGUMENTS.headers)
        )
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_what_lacks_documentation_is_named(self):
        result = check(GAPS)
        lines = result.stdout.splitlines()
        named = {line.split(": ", 2)[2] for line in lines if line.startswith("no documentation")}
        self.assertEqual(named, MISSING, result.stdout + result.stderr)
        self.assertEqual(result.returncode, 1)

    def test_a_warning_fails(self):
        header = "// What for.\n#pragma once\n/// See @ref nowhere.\nint documented();\n"
        result = check(header)
        self.assertIn("nowhere", result.stdout)
        self.assertEqual(result.returncode, 1)
        self.assertEqual(check(header.replace("@ref nowhere", "there")).returncode, 0)

    def test_a_parameter_that_is_not_there_fails(self):
        header = "// What for.\n#pragma once\n/// Does it.\n/// @param b no such one\nint f(int a);\n"
        self.assertEqual(check(header).returncode, 1)


class Links(html.parser.HTMLParser):
    """The links and anchors of one page."""

    def __init__(self, text):
        super().__init__()
        self.links = []
        self.anchors = set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.links.append(value)
            if name in ("id", "name") and value:
                self.anchors.add(value)


class Pages(unittest.TestCase):
    def test_the_site_is_built_and_its_links_lead_somewhere(self):
        with tempfile.TemporaryDirectory() as folder:
            output = Path(folder) / "site"
            result = run(
                "build.py", "--source", str(ARGUMENTS.source),
                "--headers", str(ARGUMENTS.headers), "--output", str(output),
            )  # fmt: skip
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
            pages = {path: Links(path.read_text()) for path in output.rglob("*.html")}
            self.assertGreater(len(pages), 200)
            for path, page in pages.items():
                for link in page.links:
                    if link.startswith(("https:", "http:", "data:", "mailto:")):
                        continue
                    target, anchor = urldefrag(unquote(link))
                    target = (path.parent / target).resolve() if target else path
                    self.assertTrue(target.exists(), f"{path.name} links to {link}")
                    if anchor and target in pages:
                        self.assertIn(anchor, pages[target].anchors, f"{path.name}: {link}")

    def test_a_link_that_leads_nowhere_stops_the_build(self):
        for text, says in {
            "[a](gone.md)": "gone.md, which is not there",
            "[a](#gone)": "#gone, which is not there",
        }.items():
            with tempfile.TemporaryDirectory() as folder:
                (Path(folder) / "README.md").write_text(f"# Title\n\n{text}\n")
                sys.path.insert(0, str(ARGUMENTS.source / "docs/site"))
                from build import Site  # pylint: disable=import-outside-toplevel

                with self.assertRaises(SystemExit) as stopped:
                    Site(folder, folder, {"Start": {"README.md": "Overview"}})
                self.assertIn(says, str(stopped.exception))


def main():
    global ARGUMENTS
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--source", required=True, type=Path)
    parser.add_argument("--headers", required=True, type=Path)
    parser.add_argument("--doxygen", required=True)
    ARGUMENTS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
