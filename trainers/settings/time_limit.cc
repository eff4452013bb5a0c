#include <sotto/trainers/settings/time_limit.h>

#include <cmath>

#include <fmt/format.h>

#include <sotto/base/error.h>

namespace sotto {

std::chrono::milliseconds time_limit(std::string_view setting, double seconds, double most,
                                     double least) {
  if (!(seconds >= least && seconds <= most)) {
    refuse(setting, fmt::to_string(seconds),
           fmt::format("it must be {} to {} seconds", least, most));
  }
  return std::chrono::milliseconds(std::llround(seconds * 1000));
}

}  // namespace sotto
