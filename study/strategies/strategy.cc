#include <sotto/study/strategies/strategy.h>

#include <array>

#include <sotto/study/strategies/internal/all_strategies.h>

namespace sotto::study {

std::span<const Strategy* const> strategies() {
  static constexpr std::array kAll = {&internal::kDataStrategy,     &internal::kTiedStrategy,
                                      &internal::kShardedStrategy,  &internal::kExpertStrategy,
                                      &internal::kPipelineStrategy, &internal::kGridStrategy,
                                      &internal::kRingStrategy};
  return kAll;
}

double held_floats(const ModelShape& model, std::size_t parameters) {
  return static_cast<double>(2 + model.state) * static_cast<double>(parameters);
}

}  // namespace sotto::study
