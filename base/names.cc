#include <sotto/base/names.h>

#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/base/error.h>
#include <sotto/base/text.h>

namespace sotto {
namespace {

/// Optimal string alignment: the least number of letters inserted, left out, changed, or swapped
/// with their neighbour.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before;  // the rows of a's prefixes two and one letters shorter
  std::vector<std::size_t> last(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::vector<std::size_t> row(b.size() + 1, i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    before = std::move(last);
    last = std::move(row);
  }
  return last.back();
}

}  // namespace

std::string dashed(std::string_view setting) {
  std::string name(setting);
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

std::string_view family_name(std::string_view spec) {
  return spec.substr(0, spec.find_first_of(":,;/ "));
}

std::string word_list(const std::vector<std::string>& names, std::string_view last) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) {
      const bool is_last = i + 1 == names.size();
      text.append(is_last ? " " : ", ");
      if (is_last) {
        text.append(last).append(" ");
      }
    }
    text += names[i];
  }
  return text;
}

std::string nearest(std::string_view word, const std::vector<std::string>& names) {
  constexpr std::size_t kLeastPrefix = 3;
  const std::string small = small_letters(word);  // papers and tables write "DCD" for "dcd"
  std::string found;
  std::size_t least = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string& name : names) {
    if (name == word) {
      return {};
    }
    const std::string small_name = small_letters(name);
    const bool begins = small.size() >= kLeastPrefix && small_name.starts_with(small);
    const std::size_t away = begins && small_name != small ? 1 : distance(small, small_name);
    if (away < least && away < name.size()) {
      least = away;
      found = name;
    }
  }
  return found;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& names) {
  const std::string name = nearest(word, names);
  return name.empty() ? ";" : fmt::format("; did you mean {}?", name);
}

void refuse_unknown(std::string_view field, std::string_view spec,
                    const std::vector<std::string>& names, const std::vector<std::string>& forms) {
  const std::string name = nearest(family_name(spec), names);
  const std::string all = forms.empty() ? fmt::format("{}", fmt::join(names, ", "))
                                        : fmt::format("{}", fmt::join(forms, "; "));
  refuse(field, spec,
         name.empty() ? fmt::format("there are {}", all)
                      : fmt::format("did you mean {}? There are {}", name, all));
}

}  // namespace sotto
