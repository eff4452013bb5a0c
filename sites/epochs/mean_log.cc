#include <sotto/sites/epochs/mean_log.h>

namespace sotto::sites {
namespace {

constexpr std::size_t kAlwaysKept = 2;

}  // namespace

void MeanLog::add(const StepMean& mean, const EpochDigest& digest) {
  std::size_t bytes = 0;
  for (const MeanPart& part : mean.parts) {
    bytes += part.encoding.size();
  }
  kept_.push_back({mean, digest, bytes});
  bytes_ += bytes;
  while (kept_.size() > kAlwaysKept && bytes_ > most_) {
    drop_first();
  }
}

void MeanLog::keep_from(Round step) {
  while (kept_.size() > kAlwaysKept && kept_.front().mean.step < step) {
    drop_first();
  }
}

void MeanLog::drop_first() {
  bytes_ -= kept_.front().bytes;
  kept_.pop_front();
}

void MeanLog::clear() {
  kept_.clear();
  bytes_ = 0;
}

const StepMean* MeanLog::find(Round step) const {
  const Round first = oldest();
  return first == 0 || step < first || step - first >= kept_.size() ? nullptr
                                                                    : &kept_[step - first].mean;
}

std::optional<EpochDigest> MeanLog::digest(Round step) const {
  return find(step) == nullptr ? std::nullopt : std::optional(kept_[step - oldest()].digest);
}

}  // namespace sotto::sites
