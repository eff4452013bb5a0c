// The program's commands and options as data, from what CLI11 knows of them: what manual pages and
// completions are made of. Pure functions.
#pragma once

#include <string>
#include <vector>

#include <CLI/App.hpp>

namespace sotto::cli {

struct OptionWords {
  std::string name;      ///< "--lr"; of a positional, what the help calls it
  std::string type;      ///< "GAMMA"; empty for a switch
  std::string help;      ///< one sentence or two
  std::string fallback;  ///< the value when it is not given, if it has one of its own
  std::string group;     ///< title in the help
  bool required = false;
  bool repeated = false;             ///< may be given again and again
  bool optional_value = false;       ///< its value may be left out
  std::vector<std::string> choices;  ///< values, or what they begin with; empty: too many
  /// Whether the option's value is a file or a folder.
  bool is_path() const;
};

struct CommandWords {
  std::vector<std::string> path;  ///< {"sotto", "bench", "codec"}
  std::string help;
  std::string footer;
  std::vector<OptionWords> options;
  std::vector<OptionWords> positionals;
  std::vector<CommandWords> commands;
  /// "sotto bench codec"
  std::string name(const std::string& between = " ") const;
};

/// The whole tree below `app`, itself first.
CommandWords words_of(const CLI::App& app);

/// Every command of the tree, a parent before its children.
std::vector<const CommandWords*> all_of(const CommandWords& root);

}  // namespace sotto::cli
