// What the simulated sites that lie do: when their lies begin and end, what goes out in place of
// their messages (lies.h), and how much longer their rounds take.
//
// One thread at a time. The state outlives it.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include <sotto/base/philox.h>
#include <sotto/compress/compressor.h>

#include "world_state.h"

namespace sotto::sites {

class Liars {
 public:
  explicit Liars(WorldState& state);

  /// A lie begins or ends with the process of its site.
  void turn();
  /// How much longer the steps of a site take than they should.
  SimTime delay_of(Rank site);
  /// What a site lets go in place of a message; of an honest one, the message.
  std::vector<std::vector<std::byte>> in_place_of(std::vector<std::byte> message, Rank site);

 private:
  /// What a site lies about at this time; null: nothing.
  const PlannedLie* lie_now(Rank site) const;

  WorldState& state_;
  std::unique_ptr<Compressor> forger_;
  RandomStream random_;
};

}  // namespace sotto::sites
