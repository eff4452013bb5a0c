#include <sotto/base/repeated_values.h>

#include <algorithm>

#include <fmt/format.h>

#include <sotto/base/error.h>

namespace sotto {

void refuse_repeated(const std::string& option, const std::vector<std::string>& values) {
  for (auto value = values.begin(); value != values.end(); ++value) {
    const auto first = std::find(values.begin(), value, *value);
    if (first != value) {
      throw Error(fmt::format("{}: value {}, '{}', is value {} once more; once is enough", option,
                              value - values.begin() + 1, *value, first - values.begin() + 1));
    }
  }
}

}  // namespace sotto
