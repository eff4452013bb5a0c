#include "manual/man_page.h"

#include <algorithm>
#include <cstdint>
#include <string_view>

#include <fmt/format.h>

namespace sotto::cli {
namespace {

/// The code point at `at`, which is moved behind it. The program's texts are UTF-8.
std::uint32_t next_code_point(std::string_view text, std::size_t& at) {
  const auto lead = static_cast<unsigned char>(text[at++]);
  const int more = lead < 0xC0 ? 0 : lead < 0xE0 ? 1 : lead < 0xF0 ? 2 : 3;
  std::uint32_t point = more == 0 ? lead : lead & (0x3FU >> static_cast<unsigned>(more));
  for (int i = 0; i < more && at < text.size(); ++i) {
    point = point << 6 | (static_cast<unsigned char>(text[at++]) & 0x3FU);
  }
  return point;
}

/// Text that is no request: roff's own characters escaped, others than ASCII by their numbers.
std::string roff(std::string_view text) {
  std::string out;
  bool line_start = true;
  for (std::size_t at = 0; at < text.size();) {
    const std::uint32_t point = next_code_point(text, at);
    if (line_start && (point == '.' || point == '\'')) {
      out += "\\&";
    }
    line_start = point == '\n';
    if (point == '\\') {
      out += "\\e";
    } else if (point == '-') {
      out += "\\-";
    } else if (point == '`') {
      out += "\\(ga";
    } else if (point == '\'') {
      out += "\\(aq";
    } else if (point == '^') {
      out += "\\(ha";
    } else if (point == '~') {
      out += "\\(ti";
    } else if (point >= 0x80) {
      out += fmt::format("\\[u{:04X}]", point);
    } else {
      out += static_cast<char>(point);
    }
  }
  return out;
}

std::string sentence(std::string text) {
  if (!text.empty() && text.back() != '.') {
    text += '.';
  }
  return text;
}

std::string typed(const OptionWords& option) {
  if (option.type.empty()) {
    return fmt::format("\\fB{}\\fR", roff(option.name));
  }
  return fmt::format("\\fB{}\\fR \\fI{}\\fR", roff(option.name), roff(option.type));
}

std::string explained(const OptionWords& option) {
  std::string text = sentence(option.help);
  if (!option.fallback.empty() && !option.type.empty()) {
    text += fmt::format(" Default: {}.", option.fallback);
  }
  if (option.repeated && option.help.find("repeatedly") == std::string::npos) {
    text += " May be given repeatedly.";
  }
  if (option.required) {
    text += " Required.";
  }
  return roff(text);
}

/// The options under their titles, in the order in which the titles first appear.
std::string options_section(const CommandWords& command) {
  std::vector<std::string> groups;
  for (const OptionWords& option : command.options) {
    if (std::find(groups.begin(), groups.end(), option.group) == groups.end()) {
      groups.push_back(option.group);
    }
  }
  std::string text = ".SH OPTIONS\n";
  for (const std::string& group : groups) {
    text += groups.size() > 1 ? fmt::format(".SS \"{}\"\n", roff(group)) : "";
    for (const OptionWords& option : command.options) {
      if (option.group == group) {
        text += fmt::format(".TP\n{}\n{}\n", typed(option), explained(option));
      }
    }
  }
  return text;
}

std::string synopsis(const CommandWords& command) {
  std::string text = fmt::format("\\fB{}\\fR", roff(command.name()));
  for (const OptionWords& positional : command.positionals) {
    const std::string type = roff(positional.type + (positional.repeated ? " …" : ""));
    text +=
        positional.required ? fmt::format(" \\fI{}\\fR", type) : fmt::format(" [\\fI{}\\fR]", type);
  }
  if (!command.commands.empty()) {
    text += " \\fICOMMAND\\fR";
  }
  return text + " [\\fIOPTIONS\\fR]\n";
}

std::string commands_section(const CommandWords& command) {
  std::string text = ".SH COMMANDS\n";
  for (const CommandWords& below : command.commands) {
    text +=
        fmt::format(".TP\n\\fB{}\\fR(1)\n{}\n", roff(below.name("-")), roff(sentence(below.help)));
  }
  return text;
}

/// The examples of the help, as they stand there.
std::string footer_section(std::string_view footer) {
  constexpr std::string_view kExamples = "Examples:\n";
  const bool examples = footer.starts_with(kExamples);
  footer.remove_prefix(examples ? kExamples.size() : 0);
  return fmt::format(".SH {}\n.nf\n{}\n.fi\n", examples ? "EXAMPLES" : "NOTES", roff(footer));
}

constexpr std::string_view kExit =
    ".SH \"EXIT STATUS\"\n.TP\n0\nThe command did what it was asked to do.\n.TP\n1\nIt failed: a "
    "peer was lost, a file could not be written.\n.TP\n2\nThe request was wrong; the message says "
    "what would do.\n.TP\n130, 143\nA signal ended it in good order.\n";

constexpr std::string_view kEnvironment =
    ".SH ENVIRONMENT\n.TP\n\\fBRANK\\fR, \\fBWORLD_SIZE\\fR, \\fBMASTER_ADDR\\fR, "
    "\\fBMASTER_PORT\\fR\nWhich node of a launched job this process is, and where node 0 is "
    "reached. Those of Open MPI, MPICH and Slurm are read too.\n.TP\n"
    "\\fBTORCHELASTIC_RUN_ID\\fR\nSet by torchrun: where nodes that come and go meet if no seeds "
    "are given.\n";

std::string see_also(const CommandWords& command, const CommandWords& program) {
  if (command.path.size() == 1) {
    return "";
  }
  return fmt::format(".SH \"SEE ALSO\"\n\\fB{}\\fR(1)\n", roff(program.name()));
}

}  // namespace

std::string man_page(const CommandWords& command, const CommandWords& program) {
  std::string title = command.name("-");
  std::transform(title.begin(), title.end(), title.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  std::string help = command.help;
  if (!help.empty() && help.back() == '.') {
    help.pop_back();
  }
  std::string text = fmt::format(
      ".TH {} 1 \"{}\" \"sotto {}\" \"sotto\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n{}", roff(title),
      SOTTO_DATE, SOTTO_VERSION, roff(command.name("-")), roff(help), synopsis(command));
  if (!command.positionals.empty()) {
    text += ".SH ARGUMENTS\n";
    for (const OptionWords& positional : command.positionals) {
      text += fmt::format(".TP\n\\fI{}\\fR\n{}\n", roff(positional.type), explained(positional));
    }
  }
  if (!command.commands.empty()) {
    text += commands_section(command);
  }
  if (!command.options.empty()) {
    text += options_section(command);
  }
  text += kExit;
  if (command.path.size() == 1 || command.path.back() == "train") {
    text += kEnvironment;
  }
  return text + (command.footer.empty() ? "" : footer_section(command.footer)) +
         see_also(command, program);
}

}  // namespace sotto::cli
