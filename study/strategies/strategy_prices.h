// What strategies cost on a scenario's network, and which of them are worth it.
//
//   const std::vector<StrategyPrice> prices = price_strategies(scenario);
//
// Seconds and bytes are those of steps that the simulator plays with the real exchanges, without
// contents. Of equal blocks one and two are played, and the difference is taken for each further
// one. A step has a batch of every node, whatever the strategy.
//
// A strategy is refused where a node's memory does not hold it ([nodes] memory), and where its step
// is slower than one of data parallelism, as long as that fits. The budget of a link is what it
// carries in the time in which data parallelism has exchanged.
//
// Pure functions; one call at a time.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <sotto/study/scenario/scenario.h>
#include <sotto/study/strategies/strategy.h>

namespace sotto::study {

/// A way to follow a strategy, priced; of the ways of one strategy the quickest that fits.
struct StrategyPrice {
  const Strategy* strategy = nullptr;
  std::string way;          ///< StrategyWay::text
  std::string compressor;   ///< of rows and gradients
  bool priced = false;      ///< false: the model or the nodes do not have it, as `refused` says
  double seconds = 0;       ///< of a step
  double bytes = 0;         ///< that a node sends a step, in the mean
  double most_bytes = 0;    ///< that the busiest node sends a step
  double memory_bytes = 0;  ///< of a node
  int phases = 0;           ///< exchanges in groups, one behind the other; 0: none in groups
  std::string refused;      ///< why not; "": it is worth a try
  std::string command;      ///< the `sotto train` that does it; "": runs_with says what does
};

/// Asked between strategies: true ends the pricing, with those that are priced.
using StopPricing = std::function<bool()>;

/// Throws Error for a scenario whose nodes lie, or are drawn for each exchange, or are one or more
/// than 64.
void require_priceable(const Scenario& scenario);

/// All strategies in full precision and in 8 bits: those that are worth it, the quickest first,
/// then the refused ones, then those that are not there. Throws Error as
/// require_priceable.
std::vector<StrategyPrice> price_strategies(const Scenario& scenario, const StopPricing& stop = {});

}  // namespace sotto::study
