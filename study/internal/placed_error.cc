#include <sotto/study/internal/placed_error.h>

#include <fmt/format.h>

namespace sotto::study {

Error placed(const std::string& place, const Error& error) {
  Message said = place + ": ";
  if (!error.field().empty()) {
    said += mention(error.field());
    said += error.value() ? fmt::format(": '{}' is refused: ", *error.value()) : std::string(": ");
  }
  said += error.reason();
  return Error(said);
}

}  // namespace sotto::study
