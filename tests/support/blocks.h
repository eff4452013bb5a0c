// The blocks of code in README.md and docs/*.md, for the tests that hold them to what they show. A
// block in a list is taken without its indentation.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

namespace sotto::test {

struct Block {
  std::string page;      ///< "docs/privacy.md"
  std::size_t line = 0;  ///< of the fence
  std::string language;
  std::string
      why_not;  ///< of a comment `<!-- not run: … -->` above the fence; empty: there is none
  std::vector<std::string> lines;

  std::string place() const { return page + ":" + std::to_string(line); }
  std::string text() const {
    std::string all;
    for (const std::string& each : lines) {
      all += each + '\n';
    }
    return all;
  }
};

inline std::vector<Block> blocks_of(const std::filesystem::path& root, const std::string& page) {
  constexpr std::string_view kNotRun = "<!-- not run: ";
  std::vector<Block> blocks;
  std::ifstream in(root / page);
  std::string before;
  std::size_t number = 0;
  std::size_t indentation = 0;
  bool inside = false;
  for (std::string line; std::getline(in, line); before = line) {
    ++number;
    const auto fence = line.find_first_not_of(' ');
    if (fence != std::string::npos && line.compare(fence, 3, "```") == 0) {
      inside = !inside;
      if (inside) {
        indentation = fence;
        const auto comment = before.find(kNotRun);
        const auto end = before.find(" -->");
        const bool told = comment != std::string::npos && end != std::string::npos;
        const auto why = told ? comment + kNotRun.size() : 0;
        blocks.push_back({.page = page,
                          .line = number,
                          .language = line.substr(fence + 3),
                          .why_not = told ? before.substr(why, end - why) : std::string(),
                          .lines = {}});
      }
    } else if (inside) {
      blocks.back().lines.push_back(line.substr(std::min(indentation, line.size())));
    }
  }
  CHECK_MESSAGE(!inside, page, " has a block without an end");
  return blocks;
}

/// The blocks of README.md and of all pages in docs/.
inline std::vector<Block> all_blocks(const std::filesystem::path& root) {
  std::vector<std::string> pages = {"README.md"};
  for (const auto& entry : std::filesystem::directory_iterator(root / "docs")) {
    if (entry.path().extension() == ".md") {
      pages.push_back("docs/" + entry.path().filename().string());
    }
  }
  std::sort(pages.begin(), pages.end());
  std::vector<Block> all;
  for (const std::string& page : pages) {
    const auto blocks = blocks_of(root, page);
    all.insert(all.end(), blocks.begin(), blocks.end());
  }
  REQUIRE(all.size() > 50);
  return all;
}

/// The commands of a block of shell as words: lines that end in a backslash go on, and what stands
/// between `|`, `&&`, `;`, `<(` and `)` is a command of its own. Knows quotes and comments.
inline std::vector<std::vector<std::string>> commands_of(const Block& block) {
  std::vector<std::vector<std::string>> commands(1);
  std::string word;
  bool open = false;
  const auto end_word = [&] {
    if (open) {
      commands.back().push_back(word);
    }
    word.clear();
    open = false;
  };
  const auto end_command = [&] {
    end_word();
    if (!commands.back().empty()) {
      commands.emplace_back();
    }
  };
  char quote = 0;
  const std::string text = block.text();
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const char next = i + 1 < text.size() ? text[i + 1] : '\n';
    if (quote != 0) {
      if (c == quote) {
        quote = 0;
      } else {
        word += c;
      }
    } else if (c == '"' || c == '\'') {
      quote = c;
      open = true;
    } else if (c == '\\' && next == '\n') {
      end_word();
      ++i;
    } else if (c == '#' && !open) {
      i = text.find('\n', i) - 1;
    } else if (c == '\n' || c == '|' || c == ';' || c == ')' || (c == '<' && next == '(') ||
               (c == '&' && next == '&')) {
      end_command();
      i += c == '<' || c == '&' ? 1 : 0;
    } else if (c == ' ') {
      end_word();
    } else if (c == '&') {  // in the background
      end_command();
    } else {
      word += c;
      open = true;
    }
  }
  end_command();
  commands.pop_back();
  return commands;
}

}  // namespace sotto::test
