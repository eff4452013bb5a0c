#include <sotto/base/tensor_selector.h>

#include <algorithm>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/number.h>
#include <sotto/base/text.h>

namespace sotto {
namespace {

constexpr std::string_view kUnder = "under:";
constexpr std::string_view kSelector = "a selector is a name with * and ?, 1d, ends, or under:N";
constexpr std::size_t kFewestWithEnds = 3;  // one is to be left between the ends

bool is_printable(char c) { return static_cast<unsigned char>(c) >= 0x20 && c != 0x7F; }

bool has_matrix(const ParameterBlock& tensor) { return tensor.shape.size() > 1; }

bool is_end(const ParameterLayout& layout, std::size_t index) {
  if (!has_matrix(layout[index]) ||
      std::ranges::count_if(layout, has_matrix) < static_cast<std::ptrdiff_t>(kFewestWithEnds)) {
    return false;
  }
  const auto first = layout.begin() + static_cast<std::ptrdiff_t>(index);
  return std::none_of(layout.begin(), first, has_matrix) ||
         std::none_of(first + 1, layout.end(), has_matrix);
}

std::string some_names(const ParameterLayout& layout) {
  constexpr std::size_t kMost = 12;
  std::string names;
  for (std::size_t i = 0; i < std::min(layout.size(), kMost); ++i) {
    names += (i == 0 ? "" : ", ") + layout[i].name;
  }
  return names + (layout.size() > kMost ? ", …" : "");
}

std::vector<std::string_view> pieces_of(std::string_view text) {
  std::vector<std::string_view> pieces;
  for (std::size_t end = text.find(';'); end != std::string_view::npos; end = text.find(';')) {
    pieces.push_back(trimmed(text.substr(0, end)));
    text.remove_prefix(end + 1);
  }
  pieces.push_back(trimmed(text));
  return pieces;
}

/// The first rule that fits; as many as there are where none does.
std::size_t rule_of(std::span<const SelectedSpec> rules, const ParameterLayout& layout,
                    std::size_t index, bool by_name_alone = false) {
  const auto found = std::ranges::find_if(rules, [&](const SelectedSpec& rule) {
    return (rule.selector.by_name() || !by_name_alone) && rule.selector.fits(layout, index);
  });
  return static_cast<std::size_t>(found - rules.begin());
}

void require_some(const TensorSelector& selector, const ParameterLayout& layout,
                  std::string_view field) {
  for (std::size_t i = 0; i < layout.size(); ++i) {
    if (selector.fits(layout, i)) {
      return;
    }
  }
  refuse(field, selector.text(),
         fmt::format("it fits none of the tensors {}; * stands for any characters, ? for one",
                     some_names(layout)));
}

/// The first rule that fits a tensor counts: one by name for which others by name leave none says
/// nothing. Rules by rank or size may leave some in another model.
void require_some_left(const TensorSelector& selector, std::span<const SelectedSpec> earlier,
                       const ParameterLayout& layout, std::string_view field) {
  std::string before;
  for (std::size_t i = 0; i < layout.size(); ++i) {
    if (!selector.fits(layout, i)) {
      continue;
    }
    const std::size_t first = rule_of(earlier, layout, i, /*by_name_alone=*/true);
    if (first == earlier.size()) {
      return;
    }
    const std::string quoted = fmt::format("'{}'", earlier[first].selector.text());
    if (before.find(quoted) == std::string::npos) {
      before += (before.empty() ? "" : ", ") + quoted;
    }
  }
  if (!before.empty()) {
    refuse(field, selector.text(),
           fmt::format("the first rule that fits a tensor counts, and those before it fit all of "
                       "this one's: {}; put this one in front, or leave it out",
                       before));
  }
}

}  // namespace

TensorSelector::TensorSelector(std::string_view text, std::string_view field) : text_(text) {
  if (text_.empty() || !std::ranges::all_of(text_, is_printable)) {
    refuse(field, text, kSelector);
  }
  if (text_ == "1d") {
    kind_ = Kind::rank;
  } else if (text_ == "ends") {
    kind_ = Kind::ends;
  } else if (text_.starts_with(kUnder)) {
    kind_ = Kind::size;
    const auto below = parse_number<std::size_t>(std::string_view(text_).substr(kUnder.size()));
    if (!below) {
      refuse(field, text, "under: takes a number of elements, e.g. under:1024");
    }
    below_ = *below;
  }
}

bool TensorSelector::fits(const ParameterLayout& layout, std::size_t index) const {
  const ParameterBlock& tensor = layout[index];
  switch (kind_) {
    case Kind::rank:
      return !has_matrix(tensor);
    case Kind::ends:
      return is_end(layout, index);
    case Kind::size:
      return tensor.size < below_;
    case Kind::name:
      return fits_glob(text_, tensor.name);
  }
  return false;
}

SpecByTensor read_spec_by_tensor(std::string_view text, std::string_view field,
                                 std::string_view example) {
  const auto pieces = pieces_of(text);
  SpecByTensor read{.otherwise = std::string(pieces.front()), .rules = {}};
  read.rules.reserve(pieces.size() - 1);
  for (const std::string_view piece : std::span(pieces).subspan(1)) {
    const std::size_t equals = piece.find('=');
    if (equals == std::string_view::npos) {
      refuse(field, piece, fmt::format("rules are written SELECTOR=SPEC, e.g. {}", example));
    }
    const std::string_view selector = trimmed(piece.substr(0, equals));
    if (selector.empty()) {
      refuse(field, piece, kSelector);
    }
    read.rules.push_back(
        {TensorSelector(selector, field), std::string(trimmed(piece.substr(equals + 1)))});
  }
  return read;
}

std::vector<std::size_t> rule_of_each(std::span<const SelectedSpec> rules,
                                      const ParameterLayout& layout, std::string_view field) {
  for (std::size_t k = 0; layout.size() > 1 && k < rules.size(); ++k) {
    if (rules[k].selector.by_name()) {
      require_some(rules[k].selector, layout, field);
      require_some_left(rules[k].selector, rules.first(k), layout, field);
    }
  }
  std::vector<std::size_t> numbers(layout.size());
  for (std::size_t i = 0; i < layout.size(); ++i) {
    numbers[i] = rule_of(rules, layout, i);
  }
  return numbers;
}

bool fits_glob(std::string_view glob, std::string_view text) {
  std::size_t g = 0;
  std::size_t t = 0;
  // Where to go on when what follows the last * did not fit: one more character belongs to it.
  std::size_t star = std::string_view::npos;
  std::size_t resume = 0;
  while (t < text.size()) {
    if (g < glob.size() && glob[g] == '*') {
      star = g++;
      resume = t;
    } else if (g < glob.size() && (glob[g] == '?' || glob[g] == text[t])) {
      ++g;
      ++t;
    } else if (star != std::string_view::npos) {
      g = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  return glob.find_first_not_of('*', g) == std::string_view::npos;
}

}  // namespace sotto
