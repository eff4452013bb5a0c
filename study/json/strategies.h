// Priced strategies as JSON. Pure functions; thread-safe.
#pragma once

#include <vector>

#include <sotto/study/json/figures.h>
#include <sotto/study/strategies/strategy_prices.h>

namespace sotto::study {

/// An entry for each price, in their order; what is not priced has nulls for figures.
Json strategies_json(const std::vector<StrategyPrice>& prices);

}  // namespace sotto::study
