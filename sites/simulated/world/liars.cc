#include "liars.h"

#include <utility>

#include <sotto/compress/registry.h>
#include <sotto/sites/faults/lies.h>

namespace sotto::sites {

Liars::Liars(WorldState& state)
    : state_(state),
      forger_(make_compressor(state.plan.compressor)),
      random_({.seed = state.options.seed, .rank = 3, .purpose = Purpose::faults}) {}

const PlannedLie* Liars::lie_now(Rank site) const {
  const PlannedLie* lie = state_.plan.lie_of(site);
  const bool now = lie != nullptr && state_.now() >= lie->at && state_.now() < lie->end();
  return now ? lie : nullptr;
}

void Liars::turn() {
  for (const PlannedLie& lie : state_.plan.lies) {
    const bool turns = state_.now() == lie.end() || (lie.restarts && state_.now() == lie.at);
    for (const Rank site : turns ? lie.sites : std::vector<Rank>()) {
      if (Process* process = state_.living(site)) {
        state_.end_and_begin_again(*process);
      }
    }
  }
}

SimTime Liars::delay_of(Rank site) {
  const PlannedLie* lie = lie_now(site);
  const bool late = lie != nullptr && lie->kind == LieKind::late &&
                    (lie->often >= 1 || random_.uniform() < lie->often);
  return late ? from_nanoseconds(lie->strength_of() * static_cast<double>(state_.plan.patience))
              : 0;
}

std::vector<std::vector<std::byte>> Liars::in_place_of(std::vector<std::byte> message, Rank site) {
  if (const PlannedLie* lie = lie_now(site)) {
    return lie_about(*lie, message,
                     {.dimension = state_.options.dimension,
                      .exchange = state_.plan.exchange,
                      .compressor = forger_.get()},
                     random_);
  }
  std::vector<std::vector<std::byte>> honest;
  honest.push_back(std::move(message));
  return honest;
}

}  // namespace sotto::sites
