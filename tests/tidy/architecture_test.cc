// What ARCHITECTURE.md names exists: files, and types and functions where it says that they are.
#include <algorithm>
#include <filesystem>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "support/text_of_file.h"

namespace sotto::test::architecture_test {

namespace fs = std::filesystem;

namespace {

const fs::path kTree = SOTTO_SOURCE_DIR;

/// The page, each run of blanks and line ends one blank.
std::string page() {
  return std::regex_replace(text_of_file(kTree / "ARCHITECTURE.md"), std::regex(R"(\s+)"), " ");
}

/// The text of a file, or of all sources in a folder.
std::string sources_at(const fs::path& path) {
  if (!fs::is_directory(path)) {
    return text_of_file(path);
  }
  std::string text;
  for (const auto& entry : fs::recursive_directory_iterator(path)) {
    if (entry.is_regular_file()) {
      text += text_of_file(entry.path());
    }
  }
  return text;
}

std::vector<std::smatch> all_matches(const std::string& text, const std::regex& wanted) {
  return {std::sregex_iterator(text.begin(), text.end(), wanted), {}};
}

/// All files of the tree but those of builds: "/sites/core/site.h".
std::vector<std::string> files_of_tree() {
  std::vector<std::string> files;
  for (const auto& folder : fs::directory_iterator(kTree)) {
    const std::string name = folder.path().filename().string();
    if (!folder.is_directory() || name.starts_with("build") || name.starts_with(".")) {
      continue;
    }
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      files.push_back("/" + fs::relative(entry.path(), kTree).string());
    }
  }
  return files;
}

}  // namespace

TEST_CASE("what ARCHITECTURE.md says is in a file is there") {
  // `name` (`path`), and `Class::name(arguments)` (`path`).
  const std::regex pair(R"(`([A-Za-z_:]+)(?:\([^`]*\))?` \(`([a-z_0-9]+/[a-z_0-9/.]*)`)");
  const std::regex word("[A-Za-z_]+");
  const std::string text = page();
  const auto pairs = all_matches(text, pair);
  CHECK(pairs.size() > 20);
  for (const auto& match : pairs) {
    const fs::path path = kTree / match[2].str();
    REQUIRE_MESSAGE(fs::exists(path), match[2].str());
    const std::string sources = sources_at(path);
    const std::string name = match[1].str();
    for (const auto& part : all_matches(name, word)) {
      const std::regex whole("\\b" + part.str() + "\\b");
      CHECK_MESSAGE(std::regex_search(sources, whole), match[1].str(), " is not in ",
                    match[2].str());
    }
    if (path.extension() == ".cc" && name.find("::") != std::string::npos) {
      CHECK_MESSAGE(sources.find(name) != std::string::npos, name, " is not defined in ",
                    match[2].str());
    }
  }
}

TEST_CASE("the files that ARCHITECTURE.md names are in the tree") {
  const std::vector<std::string> files = files_of_tree();
  const std::string text = page();
  const auto named = all_matches(text, std::regex(R"(`([a-z_0-9/]+\.(?:h|cc))`)"));
  CHECK(named.size() > 20);
  for (const auto& match : named) {
    const std::string end = "/" + match[1].str();
    CHECK_MESSAGE(std::ranges::any_of(files, [&](const auto& file) { return file.ends_with(end); }),
                  match[1].str());
  }
}

TEST_CASE("the files that comments name are in the tree") {
  const std::vector<std::string> files = files_of_tree();
  std::set<std::string> ends;
  for (const std::string& file : files) {
    for (auto at = file.find('/'); at != std::string::npos; at = file.find('/', at + 1)) {
      ends.insert(file.substr(at + 1));
    }
  }
  const std::set<std::string> of_others = {"foreach_target.h", "doctest.h", "zmq.h"};
  const std::regex named(R"((?:^|[\s(`])([a-z_0-9/]+\.(?:h|cc|cu))\b)");
  std::size_t found = 0;
  for (const std::string& file : files) {
    if (!file.ends_with(".h") && !file.ends_with(".cc")) {
      continue;
    }
    std::istringstream lines(text_of_file(kTree.string() + file));
    for (std::string line; std::getline(lines, line);) {
      const auto comment = line.find("//");
      if (comment == std::string::npos || line.find("#include") < comment) {
        continue;
      }
      for (const auto& match : all_matches(line, named)) {
        // What a program writes, and headers of others, are no files of the tree.
        const std::string name = match[1].str();
        const bool ours = static_cast<std::size_t>(match.position()) > comment &&
                          !of_others.contains(name) && !name.starts_with("sotto/");
        found += ours ? 1U : 0U;
        CHECK_MESSAGE((!ours || ends.contains(name)), file, ": ", name);
      }
    }
  }
  CHECK(found > 50);
}

}  // namespace sotto::test::architecture_test
