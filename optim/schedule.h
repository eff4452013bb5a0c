// Learning-rate schedules: a factor for each round. A plain value; thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <sotto/base/ids.h>

namespace sotto {

/// constant; step: × factor every `every` rounds; cosine: from 1 down to `floor` over `total`
/// rounds; invsqrt: 1/√(1 + t/every). `warmup` rounds of linear rise come first in each.
struct Schedule {
  /// The schedule's form.
  enum class Shape { constant, step, cosine, inverse_sqrt };

  Shape shape = Shape::constant;
  Round warmup = 0;
  Round every = 1;
  double factor = 0.1;
  double floor = 0;
  Round total = 0;

  /// The factor of the learning rate in `round`.
  double multiplier(Round round) const;
  /// The specification that parses, with the same total, to this schedule.
  std::string spec() const;
};

/// The names with which specifications begin.
std::vector<std::string> schedule_names();

/// Parses `constant`, `step:EVERY[:FACTOR]`, `cosine[:FLOOR]`, `invsqrt:EVERY`, each with an
/// optional
/// `,warmup=ROUNDS`; `total` is the run's length. Throws Error.
Schedule parse_schedule(std::string_view spec, Round total);

}  // namespace sotto
