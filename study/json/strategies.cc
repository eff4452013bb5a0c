#include <sotto/study/json/strategies.h>

#include <string>

namespace sotto::study {
namespace {

Json or_nothing(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

}  // namespace

Json strategies_json(const std::vector<StrategyPrice>& prices) {
  Json all = Json::array();
  for (const StrategyPrice& one : prices) {
    const auto figure = [&](auto value) { return one.priced ? Json(value) : Json(nullptr); };
    all.push_back({{"strategy", one.strategy->name},
                   {"way", or_nothing(one.way)},
                   {"compressor", one.compressor},
                   {"s_per_step", figure(one.seconds)},
                   {"bytes_per_step", figure(one.bytes)},
                   {"most_bytes_per_step", figure(one.most_bytes)},
                   {"memory_bytes", figure(one.memory_bytes)},
                   {"exchanges_in_groups", figure(one.phases)},
                   {"refused", or_nothing(one.refused)},
                   {"runs_with", one.strategy->runs_with},
                   {"command", or_nothing(one.command)}});
  }
  return all;
}

}  // namespace sotto::study
