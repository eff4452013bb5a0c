#include "tensor_rule.h"

#include <algorithm>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/number.h>
#include <sotto/base/text.h>

namespace sotto::internal {
namespace {

constexpr std::string_view kUnder = "under:";

bool is_printable(char c) { return static_cast<unsigned char>(c) >= 0x20 && c != 0x7F; }

}  // namespace

TensorRule::TensorRule(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos) {
    refuse("compressor", text, "rules are written SELECTOR=SPEC, e.g. *.bias=none");
  }
  selector_ = trimmed(text.substr(0, equals));
  spec_ = trimmed(text.substr(equals + 1));
  if (selector_.empty() || !std::ranges::all_of(selector_, is_printable)) {
    refuse("compressor", text, "a selector is a name with * and ?, 1d, or under:N");
  }
  if (selector_ == "1d") {
    kind_ = Kind::rank;
  } else if (selector_.starts_with(kUnder)) {
    kind_ = Kind::size;
    const auto below = parse_number<std::size_t>(std::string_view(selector_).substr(kUnder.size()));
    if (!below) {
      refuse("compressor", text, "under: takes a number of elements, e.g. under:1024");
    }
    below_ = *below;
  }
}

bool TensorRule::fits(const ParameterBlock& tensor) const {
  switch (kind_) {
    case Kind::rank:
      return tensor.shape.size() <= 1;
    case Kind::size:
      return tensor.size < below_;
    case Kind::name:
      return fits_glob(selector_, tensor.name);
  }
  return false;
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

}  // namespace sotto::internal
