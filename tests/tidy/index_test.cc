// The tables of docs/security.md and docs/faults.md say which test shows what: the tests are there,
// and every target that the harness names stands in its table.
#include <fnmatch.h>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "support/text_of_file.h"

namespace sotto::test::index_test {

namespace fs = std::filesystem;

namespace {

const fs::path kRoot = SOTTO_SOURCE_DIR;

/// The names of the test cases of tests/FOLDER, whatever lines their literals are spread over.
std::vector<std::string> cases_of(const std::string& folder) {
  static const std::regex head(
      R"re(TEST_CASE(?:_TEMPLATE|_FIXTURE)?\(\s*((?:"(?:[^"\\]|\\.)*"\s*)+))re");
  static const std::regex literal(R"re("((?:[^"\\]|\\.)*)")re");
  std::vector<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(kRoot / "tests" / folder)) {
    if (!entry.path().string().ends_with("_test.cc")) {
      continue;
    }
    const std::string text = text_of_file(entry.path());
    for (std::sregex_iterator it(text.begin(), text.end(), head), end; it != end; ++it) {
      const std::string literals = (*it)[1].str();
      std::string& name = names.emplace_back();
      for (std::sregex_iterator part(literals.begin(), literals.end(), literal); part != end;
           ++part) {
        name += (*part)[1].str();
      }
    }
  }
  return names;
}

/// The parts between commas, as doctest takes a filter.
std::vector<std::string> patterns_of(const std::string& filter) {
  static const std::regex comma(",");
  return {std::sregex_token_iterator(filter.begin(), filter.end(), comma, -1), {}};
}

}  // namespace

TEST_CASE("every test that security and faults name is there") {
  const std::regex entry(R"re(test_([a-z]+) -tc="([^"]+)")re");
  for (const char* page : {"security.md", "faults.md"}) {
    const std::string text = text_of_file(kRoot / "docs" / page);
    std::size_t entries = 0;
    for (std::sregex_iterator it(text.begin(), text.end(), entry), end; it != end; ++it) {
      ++entries;
      REQUIRE_MESSAGE(fs::is_directory(kRoot / "tests" / (*it)[1].str()), page, ": ", it->str());
      const auto names = cases_of((*it)[1].str());
      for (const std::string& pattern : patterns_of((*it)[2].str())) {
        const bool found = std::any_of(names.begin(), names.end(), [&](const auto& name) {
          return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
        });
        CHECK_MESSAGE(found, page, ": no test case of test_", (*it)[1].str(), " is called '",
                      pattern, "'");
      }
    }
    CHECK_MESSAGE(entries > 10, page, " has lost its tables");
  }
}

// The targets of compressors come from the registry: fuzz_replay holds them to the corpus, and
// every folder of the corpus to a target.
TEST_CASE("every target that the harness names has a corpus and stands in the table of decoders") {
  const std::string list = text_of_file(kRoot / "tests" / "fuzz" / "harness.cc");
  const std::string page = text_of_file(kRoot / "docs" / "security.md");
  const std::regex target(R"re(\{"([a-z0-9_]+)", [a-z_]+\},)re");
  std::set<std::string> targets;
  for (std::sregex_iterator it(list.begin(), list.end(), target), end; it != end; ++it) {
    targets.insert((*it)[1].str());
  }
  CHECK(targets.size() > 25);
  for (const std::string& name : targets) {
    CHECK_MESSAGE(fs::is_directory(kRoot / "tests" / "fuzz" / "corpus" / name), name);
    CHECK_MESSAGE(page.find("`" + name + "`") != std::string::npos, name);
  }
}

TEST_CASE("every example has its line in the list of examples") {
  const std::string page = text_of_file(kRoot / "examples" / "README.md");
  std::size_t found = 0;
  for (const auto& entry : fs::recursive_directory_iterator(kRoot / "examples")) {
    const std::string name = entry.path().filename().string();
    const std::string folder =
        fs::relative(entry.path(), kRoot / "examples").parent_path().string();
    // Traces are named by scenarios.
    const bool trace = folder == "scenarios" && !name.ends_with(".toml");
    if (!entry.is_regular_file() || name == "CMakeLists.txt" || name == "README.md" ||
        name.ends_with(".pyc") || trace) {
      continue;
    }
    ++found;
    CHECK_MESSAGE(
        page.find("(" + (folder.empty() ? "" : folder + "/") + name + ")") != std::string::npos,
        folder, "/", name);
  }
  CHECK(found > 80);
}

}  // namespace sotto::test::index_test
