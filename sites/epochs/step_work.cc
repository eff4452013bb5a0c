#include <sotto/sites/epochs/step_work.h>

namespace sotto::sites {

bool StepWork::can_make(std::size_t members, const std::optional<EpochTime>& grace,
                        EpochTime now) const {
  if (made_ || chunks_.empty()) {
    return false;
  }
  const bool late = grace && since_ && now - *since_ >= *grace;
  return chunks_.size() == members || late;
}

void StepWork::make(std::uint16_t own, MeanPart part) {
  made_ = std::move(part);
  parts_.try_emplace(own, *made_);
}

std::optional<StepMean> StepWork::mean(Round step, std::size_t members) const {
  if (parts_.size() < members) {
    return std::nullopt;
  }
  StepMean mean{.step = step, .parts = {}};
  mean.parts.reserve(parts_.size());
  for (const auto& [place, part] : parts_) {
    mean.parts.push_back(part);
  }
  return mean;
}

}  // namespace sotto::sites
