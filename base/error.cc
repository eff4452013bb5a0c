#include <sotto/base/error.h>

#include <fmt/format.h>

namespace sotto {

void refuse(std::string_view field, std::string_view value, std::string_view reason) {
  throw Error(fmt::format("{}: '{}' is refused: {}", field, value, reason));
}

}  // namespace sotto
