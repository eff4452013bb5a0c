#include <sotto/trainers/settings/time_limit.h>

#include <cmath>

#include <fmt/format.h>

#include <sotto/base/error.h>

namespace sotto {

std::chrono::milliseconds time_limit(std::string_view setting, double seconds, double most) {
  if (!(seconds >= 0.001 && seconds <= most)) {
    refuse(setting, fmt::to_string(seconds), fmt::format("it must be 0.001 to {} seconds", most));
  }
  return std::chrono::milliseconds(std::llround(seconds * 1000));
}

}  // namespace sotto
