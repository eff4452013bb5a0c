#include <sotto/trainers/settings/agreed_settings.h>

#include <algorithm>

#include <fmt/format.h>

#include <sotto/base/error.h>

namespace sotto {
namespace {

/// Cuts the first line off `text`.
std::string_view next_line(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(text.size(), line.size() + 1));
  return line;
}

}  // namespace

std::string settings_text(const AgreedSettings& settings) {
  std::string text;
  for (const auto& [name, value] : settings) {
    text += fmt::format("{}={}\n", name, one_line(value));
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
    // A setting that only one of the two has stands at the end.
    if (ours.empty() || theirs.empty()) {
      const std::string_view given = ours.empty() ? theirs : ours;
      if (const auto at = given.find('='); at != std::string_view::npos && at > 0) {
        const auto name = excerpt(given.substr(0, at));
        const auto value = excerpt(given.substr(at + 1));
        return ours.empty() ? fmt::format("{} is not given here and {} there", name, value)
                            : fmt::format("{} is {} here and not given there", name, value);
      }
    }
    // What is there was said by a peer or stands in a file: a line may lack its '='.
    const auto equals = ours.find('=');
    if (equals == 0 || equals == std::string_view::npos ||
        !theirs.starts_with(ours.substr(0, equals + 1))) {
      return fmt::format("'{}' here and '{}' there", excerpt(ours), excerpt(theirs));
    }
    return fmt::format("{} is {} here and {} there", excerpt(ours.substr(0, equals)),
                       excerpt(ours.substr(equals + 1)), excerpt(theirs.substr(equals + 1)));
  }
  return {};
}

}  // namespace sotto
