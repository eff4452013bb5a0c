#include "manual/completion_scripts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace sotto::cli {
namespace {

std::string joined(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, " "));
}

/// `text` with every character of `special` behind `mark`.
std::string marked(const std::string& text, std::string_view special, std::string_view mark) {
  std::string out;
  for (const char c : text) {
    if (special.find(c) != std::string_view::npos) {
      out += mark;
    }
    out += c;
  }
  return out;
}

/// `text` between single quotes, as all shells read it but for fish's backslashes.
std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return out + "'";
}

/// What follows the program's name: " bench codec"; "" for the program itself.
std::string tail(const CommandWords& command) {
  return command.name().substr(command.path.front().size());
}

// ----- bash

/// Completes the value behind `--option`.
std::string bash_value(const CommandWords& command, const OptionWords& option) {
  const std::string reply =
      !option.choices.empty()
          ? fmt::format("COMPREPLY=($(compgen -W {} -- \"$word\"))", quoted(joined(option.choices)))
      : option.is_path() ? "compopt -o filenames; COMPREPLY=($(compgen -f -- \"$word\"))"
                         : "COMPREPLY=()";
  // A value that may be left out gives way to the next option.
  const std::string unless = option.optional_value ? "[[ $word == -* ]] || " : "";
  return fmt::format("    {}) {}{{ {}; return; }} ;;\n", quoted(tail(command) + " " + option.name),
                     unless, reply);
}

/// The words that may follow a command.
std::string bash_words(const CommandWords& command) {
  std::vector<std::string> words;
  bool files = false;
  for (const CommandWords& below : command.commands) {
    words.push_back(below.path.back());
  }
  for (const OptionWords& option : command.options) {
    words.push_back(option.name);
  }
  for (const OptionWords& positional : command.positionals) {
    words.insert(words.end(), positional.choices.begin(), positional.choices.end());
    files |= positional.is_path();
  }
  return fmt::format("    {}) words={}{} ;;\n", quoted(tail(command)), quoted(joined(words)),
                     files ? "; files=yes" : "");
}

// ----- zsh

/// "NAME:(a b)", "FILE:_files" or "GAMMA: "
std::string zsh_value(const OptionWords& option) {
  const std::string type = marked(option.type, ":[]\\", "\\");
  if (!option.choices.empty()) {
    return fmt::format("{}:({})", type, joined(option.choices));
  }
  return type + (option.is_path() ? ":_files" : ": ");
}

std::string zsh_option(const OptionWords& option) {
  const std::string help = marked(option.help, ":[]\\", "\\");
  if (option.type.empty()) {
    return quoted(fmt::format("{}[{}]", option.name, help));
  }
  return quoted(fmt::format("{}{}=[{}]{}{}", option.repeated ? "*" : "", option.name, help,
                            option.optional_value ? "::" : ":", zsh_value(option)));
}

std::string zsh_function(const CommandWords& command) {
  std::string body;
  for (const OptionWords& option : command.options) {
    body += fmt::format(" \\\n    {}", zsh_option(option));
  }
  for (const OptionWords& positional : command.positionals) {
    body += fmt::format(" \\\n    {}", quoted(fmt::format("{}:{}", positional.repeated ? "*" : "",
                                                          zsh_value(positional))));
  }
  if (command.commands.empty()) {
    return fmt::format("_{}() {{\n  _arguments{}\n}}\n\n", command.name("_"), body);
  }
  std::string names;
  std::string cases;
  for (const CommandWords& below : command.commands) {
    names += fmt::format(" {}\\:{}", below.path.back(), quoted(below.help));
    cases += fmt::format("    {}) _{} ;;\n", below.path.back(), below.name("_"));
  }
  return fmt::format(
      "_{}() {{\n  local state\n  _arguments -C{} \\\n    {} \\\n    '*:: :->rest'\n"
      "  [[ $state == rest ]] || return\n  case $words[1] in\n{}  esac\n}}\n\n",
      command.name("_"), body, quoted("1:command:((" + names.substr(1) + "))"), cases);
}

// ----- fish

std::string fish_quoted(const std::string& text) { return "'" + marked(text, "'\\", "\\") + "'"; }

/// When the words of `command` have been typed and none of those below it.
std::string fish_condition(const CommandWords& command) {
  std::string condition;
  for (std::size_t i = 1; i < command.path.size(); ++i) {
    condition +=
        fmt::format("{}__fish_seen_subcommand_from {}", i > 1 ? "; and " : "", command.path[i]);
  }
  std::vector<std::string> below;
  for (const CommandWords& next : command.commands) {
    below.push_back(next.path.back());
  }
  if (command.path.size() == 1) {
    return "__fish_use_subcommand";
  }
  return below.empty()
             ? condition
             : fmt::format("{}; and not __fish_seen_subcommand_from {}", condition, joined(below));
}

std::string fish_value(const OptionWords& option) {
  if (!option.choices.empty()) {
    return " -x -a " + fish_quoted(joined(option.choices));
  }
  return option.is_path() ? (option.optional_value ? " -F" : " -r -F") : " -x";
}

std::string fish_lines(const CommandWords& command) {
  const std::string start = fmt::format("complete -c {} -n {}", command.path.front(),
                                        fish_quoted(fish_condition(command)));
  std::string lines;
  for (const CommandWords& below : command.commands) {
    lines += fmt::format("{} -a {} -d {}\n", start, below.path.back(), fish_quoted(below.help));
  }
  for (const OptionWords& option : command.options) {
    lines += fmt::format("{} -l {}{} -d {}\n", start, option.name.substr(2),
                         option.type.empty() ? "" : fish_value(option), fish_quoted(option.help));
  }
  for (const OptionWords& positional : command.positionals) {
    if (!positional.choices.empty()) {
      lines += fmt::format("{} -a {}\n", start, fish_quoted(joined(positional.choices)));
    } else if (positional.is_path()) {
      lines += start + " -F\n";
    }
  }
  return lines;
}

}  // namespace

std::string bash_completion(const CommandWords& program) {
  std::string nested;
  std::string values;
  std::string words;
  for (const CommandWords* command : all_of(program)) {
    if (command->path.size() > 1) {
      nested += fmt::format("{}{}", nested.empty() ? "" : " | ", quoted(tail(*command)));
    }
    for (const OptionWords& option : command->options) {
      if (!option.type.empty()) {
        values += bash_value(*command, option);
      }
    }
    words += bash_words(*command);
  }
  return fmt::format(R"(# Completion of {0} for bash; written by `{0} completion bash`.
_{0}() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}}
  local command= words= files= i
  # bash takes "--lr=1" apart.
  if [[ $word == = ]]; then
    word=
  elif [[ $before == = ]]; then
    before=${{COMP_WORDS[COMP_CWORD - 2]}}
  fi
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case "$command ${{COMP_WORDS[i]}}" in
      {1}) command+=" ${{COMP_WORDS[i]}}" ;;
    esac
  done
  case "$command $before" in
{2}  esac
  case "$command" in
{3}  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
  if [[ -n $files && $word != -* ]]; then
    compopt -o filenames
    COMPREPLY=($(compgen -f -- "$word"))
  fi
}}
complete -F _{0} {0}
)",
                     program.path.front(), nested, values, words);
}

std::string zsh_completion(const CommandWords& program) {
  std::string text =
      fmt::format("#compdef {0}\n# Written by `{0} completion zsh`.\n\n", program.path.front());
  for (const CommandWords* command : all_of(program)) {
    text += zsh_function(*command);
  }
  // Read by `source` it must be told; from $fpath it is called.
  return text + fmt::format(
                    "if [[ $funcstack[1] == _{0} ]]; then\n  _{0} \"$@\"\nelse\n"
                    "  compdef _{0} {0}\nfi\n",
                    program.path.front());
}

std::string fish_completion(const CommandWords& program) {
  std::string text = fmt::format(
      "# Completion of {0} for fish; written by `{0} completion fish`.\ncomplete -c {0} -f\n",
      program.path.front());
  for (const CommandWords* command : all_of(program)) {
    text += fish_lines(*command);
  }
  return text;
}

}  // namespace sotto::cli
