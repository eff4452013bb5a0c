#include <sotto/trainers/settings.h>

#include <fmt/format.h>

namespace sotto {
namespace {

/// Cuts the first line off `text`.
std::string_view next_line(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(text.size(), line.size() + 1));
  return line;
}

}  // namespace

std::string settings_text(const Settings& settings) {
  std::string text;
  for (const auto& [name, value] : settings) {
    text += fmt::format("{}={}\n", name, value);
  }
  return text;
}

std::string first_difference(std::string_view here, std::string_view there) {
  while (!here.empty() || !there.empty()) {
    const std::string_view ours = next_line(here);
    const std::string_view theirs = next_line(there);
    if (ours == theirs) {
      continue;
    }
    const std::string_view name = ours.substr(0, ours.find('='));
    if (name.empty() || theirs.substr(0, theirs.find('=')) != name) {
      return fmt::format("'{}' here and '{}' there", ours, theirs);
    }
    return fmt::format("{} is {} here and {} there", name, ours.substr(name.size() + 1),
                       theirs.substr(name.size() + 1));
  }
  return {};
}

}  // namespace sotto
