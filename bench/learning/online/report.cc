#include "report.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace sotto::bench {
namespace {

constexpr std::size_t kPushSum = 2;  // in learners()

std::string figure(double regret) {
  return std::isfinite(regret) ? fmt::format("{:.4f}", regret) : "diverged";
}

std::string order(const Case& result) {
  std::string text = "order";
  for (std::size_t k = 0; k + 1 < kClaimed; ++k) {
    const double above = result.standings[k].mean(result.standings[k].best_rate());
    const double below = result.standings[k + 1].mean(result.standings[k + 1].best_rate());
    text += fmt::format("{} {} {} {} ({}/{} seeds)", k == 0 ? "" : ";", result.standings[k].name,
                        above > below ? ">" : "<= (NOT as claimed)", result.standings[k + 1].name,
                        seeds_in_order(result, k, k + 1), result.hindsight.size());
  }
  return text + "\n";
}

}  // namespace

std::string report(const Case& result, const StudyOptions& options) {
  const auto [least, most] = std::minmax_element(result.hindsight.begin(), result.hindsight.end());
  std::string text = fmt::format(
      "{}: {} nodes, {} rounds, {:.0f} % adversarial ({}); the best fixed model loses {:.4f} to "
      "{:.4f}\n",
      result.data, result.stream.nodes, result.rounds, 100 * result.stream.adversarial,
      result.stream.unlike, *least, *most);
  const std::size_t equal = result.standings[kPushSum].best_rate();
  text += fmt::format("{:<20}{:>6}{:>9}{:>20}{:>12}{:>12}{:>9}\n", "", "rate", "regret",
                      "over the seeds", fmt::format("at {:g}", options.rates[equal]), "B a round",
                      "least ω");
  for (const Standing& standing : result.standings) {
    const std::size_t rate = standing.best_rate();
    const auto [low, high] = std::minmax_element(standing.best().begin(), standing.best().end());
    const bool edge = rate == 0 || rate + 1 == options.rates.size();
    text += fmt::format("{:<20}{:>6}{:>9}{:>20}{:>12}{:>12.0f}{:>9.3f}\n", standing.name,
                        fmt::format("{:g}{}", options.rates[rate], edge ? "*" : ""),
                        figure(standing.mean(rate)),
                        fmt::format("{} - {}", figure(*low), figure(*high)),
                        figure(standing.mean(equal)), standing.bytes, standing.mass);
  }
  text += fmt::format("{:<20}", "by rate");
  for (const double rate : options.rates) {
    text += fmt::format("{:>9g}", rate);
  }
  text += '\n';
  for (const Standing& standing : result.standings) {
    text += fmt::format("{:<20}", standing.name);
    for (std::size_t rate = 0; rate < options.rates.size(); ++rate) {
      text += fmt::format("{:>9}", figure(standing.mean(rate)));
    }
    text += '\n';
  }
  return text + order(result);
}

nlohmann::ordered_json to_json(const Case& result, const StudyOptions& options) {
  nlohmann::ordered_json out = {{"data", result.data},
                                {"nodes", result.stream.nodes},
                                {"batch", result.stream.batch},
                                {"rounds", result.rounds},
                                {"adversarial", result.stream.adversarial},
                                {"unlike", result.stream.unlike},
                                {"rates", options.rates},
                                {"hindsight_loss", result.hindsight}};
  for (const Standing& standing : result.standings) {
    // JSON has no ∞: a run that diverged is null.
    out["learners"].push_back({{"name", standing.name},
                               {"best_rate", options.rates[standing.best_rate()]},
                               {"bytes_per_round", standing.bytes},
                               {"least_mass", standing.mass},
                               {"regret", standing.regret}});
  }
  for (std::size_t k = 0; k + 1 < kClaimed; ++k) {
    out["seeds_in_order"].push_back(seeds_in_order(result, k, k + 1));
  }
  return out;
}

}  // namespace sotto::bench
