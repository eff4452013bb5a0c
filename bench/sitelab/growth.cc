#include "growth.h"

#include <algorithm>

namespace sotto::sitelab {
namespace {

/// A run that can be judged has so many seconds, and so many samples in each third.
constexpr double kLongEnough = 240;
constexpr std::size_t kEnough = 60;
/// What a mean may rise by: an allocator's slack, and who happens to be connected.
constexpr double kShareOfMemory = 0.05;
constexpr double kMemory = 512.0 * 1024;
/// … over the most that anybody had early: who has more neighbours, or lacks one, has others.
constexpr double kDescriptors = 2;

}  // namespace

void Footprints::add(double run_s, double age_s, const Footprint& taken) {
  if (age_s >= kSettled) {
    samples_.push_back({run_s, taken});
  }
}

Growth Footprints::growth(bool steady) const {
  Growth growth;
  growth.samples = samples_.size();
  if (samples_.empty()) {
    return growth;
  }
  const double first = samples_.front().run_s;
  const double third = (samples_.back().run_s - first) / 3;
  double most_early = 0;
  std::size_t early = 0;
  std::size_t late = 0;
  const auto add = [](Footprint& sum, const Footprint& taken) {
    sum.resident_bytes += taken.resident_bytes;
    sum.descriptors += taken.descriptors;
  };
  for (const Sample& sample : samples_) {
    growth.largest.resident_bytes =
        std::max(growth.largest.resident_bytes, sample.taken.resident_bytes);
    growth.largest.descriptors = std::max(growth.largest.descriptors, sample.taken.descriptors);
    if (sample.run_s < first + third) {
      add(growth.early, sample.taken);
      most_early = std::max(most_early, sample.taken.descriptors);
      ++early;
    } else if (sample.run_s >= first + 2 * third) {
      add(growth.late, sample.taken);
      ++late;
    }
  }
  const auto divide = [](Footprint& sum, std::size_t by) {
    sum.resident_bytes /= static_cast<double>(std::max<std::size_t>(by, 1));
    sum.descriptors /= static_cast<double>(std::max<std::size_t>(by, 1));
  };
  divide(growth.early, early);
  divide(growth.late, late);
  if (steady && 3 * third >= kLongEnough && early >= kEnough && late >= kEnough) {
    growth.flat = growth.late.resident_bytes <=
                      (1 + kShareOfMemory) * growth.early.resident_bytes + kMemory &&
                  growth.late.descriptors <= most_early + kDescriptors;
  }
  return growth;
}

}  // namespace sotto::sitelab
