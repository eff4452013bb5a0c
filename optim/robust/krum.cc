#include <sotto/optim/robust/krum.h>

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

namespace sotto {

Krum::Krum(std::size_t liars, bool several, std::size_t neighbours, std::size_t dimension,
           const Ops& ops)
    : liars_(liars), several_(several), ops_(ops), difference_(dimension) {
  const std::size_t most = neighbours + 1;
  models_.reserve(most);
  squares_.reserve(most * most);
  nearest_.reserve(most);
  ranked_.reserve(most);
}

std::string Krum::spec() const {
  return fmt::format("{}krum:{}", several_ ? "multi-" : "", liars_);
}

double Krum::score(std::size_t a, std::size_t count) {
  nearest_.clear();
  for (std::size_t b = 0; b < count; ++b) {
    if (b != a) {
      nearest_.push_back(squares_[a * count + b]);
    }
  }
  std::sort(nearest_.begin(), nearest_.end());
  const std::size_t wanted = count > liars_ + 2 ? count - liars_ - 2 : 1;
  const auto end =
      nearest_.begin() + static_cast<std::ptrdiff_t>(std::min(wanted, nearest_.size()));
  return std::accumulate(nearest_.begin(), end, 0.0);
}

std::size_t Krum::aggregate(const Neighbourhood& models, std::span<float> out) {
  models_.assign(1, models.own);
  for (const ReceivedModel& from : models.received) {
    models_.push_back(from.model);
  }
  const std::size_t count = models_.size();
  squares_.assign(count * count, 0);
  for (std::size_t a = 0; a < count; ++a) {
    for (std::size_t b = a + 1; b < count; ++b) {
      ops_.subtract(models_[a], models_[b], difference_);
      const double square = ops_.sum_squares(difference_);
      squares_[a * count + b] = square;
      squares_[b * count + a] = square;
    }
  }
  ranked_.clear();
  for (std::size_t a = 0; a < count; ++a) {
    ranked_.emplace_back(score(a, count), a);
  }
  std::sort(ranked_.begin(), ranked_.end());
  const std::size_t taken = several_ && count > liars_ ? count - liars_ : 1;
  ops_.fill(0, out);
  for (std::size_t i = 0; i < taken; ++i) {
    ops_.axpy(1 / static_cast<float>(taken), models_[ranked_[i].second], out);
  }
  const bool own =
      std::any_of(ranked_.begin(), ranked_.begin() + static_cast<std::ptrdiff_t>(taken),
                  [](const auto& entry) { return entry.second == 0; });
  return models.received.size() - (taken - (own ? 1 : 0));
}

}  // namespace sotto
