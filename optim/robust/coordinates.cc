#include <sotto/optim/robust/coordinates.h>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace sotto {

TrimmedMean::TrimmedMean(std::optional<std::size_t> trimmed, std::size_t neighbours)
    : trimmed_(trimmed) {
  values_.reserve(neighbours + 1);
}

std::string TrimmedMean::spec() const {
  return trimmed_ ? fmt::format("trimmed-mean:{}", *trimmed_) : "median";
}

std::size_t TrimmedMean::aggregate(const Neighbourhood& models, std::span<float> out) {
  const std::size_t count = models.received.size() + 1;
  const std::size_t most = (count - 1) / 2;
  const std::size_t cut = std::min(trimmed_.value_or(most), most);
  for (std::size_t k = 0; k < out.size(); ++k) {
    values_.assign(1, models.own[k]);
    for (const ReceivedModel& from : models.received) {
      values_.push_back(from.model[k]);
    }
    std::sort(values_.begin(), values_.end());
    double sum = 0;
    for (std::size_t i = cut; i < count - cut; ++i) {
      sum += double{values_[i]};
    }
    out[k] = static_cast<float>(sum / static_cast<double>(count - 2 * cut));
  }
  return 0;
}

std::size_t WeightedMean::aggregate(const Neighbourhood& models, std::span<float> out) {
  double own_weight = 1;
  for (const ReceivedModel& from : models.received) {
    own_weight -= double{from.weight};
  }
  ops_.copy(models.own, out);
  ops_.scale(static_cast<float>(own_weight), out);
  for (const ReceivedModel& from : models.received) {
    ops_.axpy(from.weight, from.model, out);
  }
  return 0;
}

}  // namespace sotto
