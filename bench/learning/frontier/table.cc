#include "table.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/console/plot.h>
#include <sotto/study/scenario/target.h>

#include "bench/support/plot_row.h"

namespace sotto::bench {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr double kTargetAbove = 0.05;  // nats

double final_loss(const History& history) { return history.empty() ? kNone : history.back().loss; }

study::Spread final_losses(const std::vector<History>& histories) {
  std::vector<double> losses;
  losses.reserve(histories.size());
  for (const History& history : histories) {
    losses.push_back(final_loss(history));
  }
  return study::spread_of(losses);
}

double mean_bytes(const std::vector<History>& histories) {
  double sum = 0;
  for (const History& history : histories) {
    sum += history.empty() ? kNone : history.back().bytes_per_node;
  }
  return sum / static_cast<double>(histories.size());
}

/// The mean over seeds of the seconds to the target; none where one of them misses it.
std::optional<double> mean_seconds(const std::vector<History>& timed_histories, double target) {
  study::Target goal;
  goal.loss = target;
  double sum = 0;
  for (const History& history : timed_histories) {
    const auto reached = study::time_to_target(goal, history);
    if (!reached) {
      return std::nullopt;
    }
    sum += *reached;
  }
  return sum / static_cast<double>(timed_histories.size());
}

NetworkFigures figures(const EntrantRuns& runs, std::size_t network, double equal_seconds,
                       double target) {
  NetworkFigures found;
  found.all_rounds_s = runs.round_times[network].back();
  std::vector<History> all;
  std::vector<double> losses;
  for (const History& history : runs.histories) {
    all.push_back(timed(history, runs.round_times[network]));
    losses.push_back(loss_at(all.back(), equal_seconds));
  }
  found.loss = study::spread_of(losses);
  found.to_target_s = mean_seconds(all, target);
  return found;
}

std::string spread_text(const study::Spread& spread) {
  return std::isnan(spread.mean)
             ? "diverges"
             : fmt::format("{:.3f} ({:.3f} – {:.3f})", spread.mean, spread.low, spread.high);
}

std::string seconds_text(const std::optional<double>& seconds) {
  return seconds ? fmt::format("{:.3g} s", *seconds) : "–";
}

Json json_of(const study::Spread& spread) {
  return {{"mean", spread.mean}, {"min", spread.low}, {"max", spread.high}};
}

Json searched_json(const EntrantRuns& runs) {
  Json searched = Json::array();
  for (std::size_t k = 0; k < runs.searched.size(); ++k) {
    searched.push_back({{"lr", runs.entrant.rates[k]}, {"loss", final_loss(runs.searched[k])}});
  }
  return searched;
}

}  // namespace

History timed(const History& history, const std::vector<double>& round_times) {
  History placed = history;
  for (HistoryPoint& point : placed) {
    point.time_s = point.round == 0 ? 0 : round_times[point.round - 1];
  }
  return placed;
}

double loss_at(const History& timed, double seconds) {
  const auto after = std::ranges::find_if(
      timed, [seconds](const HistoryPoint& point) { return point.time_s >= seconds; });
  if (after == timed.end()) {
    return final_loss(timed);
  }
  if (after == timed.begin()) {
    return after->loss;
  }
  const HistoryPoint& before = *(after - 1);
  const double share = (seconds - before.time_s) / (after->time_s - before.time_s);
  return before.loss + share * (after->loss - before.loss);
}

std::size_t best_of(const std::vector<History>& searched) {
  std::size_t best = 0;
  for (std::size_t k = 1; k < searched.size(); ++k) {
    const double loss = final_loss(searched[k]);
    if (loss < final_loss(searched[best]) || std::isnan(final_loss(searched[best]))) {
      best = k;
    }
  }
  return best;
}

Table tabulate(const std::vector<EntrantRuns>& runs, const Conditions& conditions,
               std::optional<double> target) {
  Table table;
  table.target = target ? *target : final_losses(runs.front().histories).mean + kTargetAbove;
  for (std::size_t network = 0; network < runs.front().round_times.size(); ++network) {
    double quickest = std::numeric_limits<double>::infinity();
    for (const EntrantRuns& each : runs) {
      quickest = std::min(quickest, each.round_times[network].back());
    }
    table.equal_seconds.push_back(quickest);
  }
  for (const EntrantRuns& each : runs) {
    Row row{.name = each.entrant.name,
            .words = each.entrant.at(each.rate),
            .loss = final_losses(each.histories),
            .bytes = mean_bytes(each.histories),
            .fewer = mean_bytes(runs.front().histories) / mean_bytes(each.histories),
            .state_floats = each.entrant.state_floats(conditions.nodes),
            .networks = {}};
    for (std::size_t network = 0; network < table.equal_seconds.size(); ++network) {
      row.networks.push_back(figures(each, network, table.equal_seconds[network], table.target));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::string markdown(const Table& table, const std::vector<Network>& networks) {
  std::string text = "| | rate | loss | sent a node | fewer bytes | state |";
  std::string rule = "| --- | ---: | ---: | ---: | ---: | ---: |";
  for (std::size_t k = 0; k < networks.size(); ++k) {
    text += fmt::format(" {}: loss after {:.3g} s | to {:.3g} |", networks[k].name,
                        table.equal_seconds[k], table.target);
    rule += " ---: | ---: |";
  }
  text += '\n' + rule + '\n';
  for (const Row& row : table.rows) {
    text += fmt::format("| {} | {} | {} | {:.3g} MB | {:.3g} × | {:.3g} |", row.name,
                        row.words.substr(row.words.rfind("lr=") + 3), spread_text(row.loss),
                        row.bytes / 1e6, row.fewer, row.state_floats);
    for (const NetworkFigures& each : row.networks) {
      text += fmt::format(" {:.3f} | {} |", each.loss.mean, seconds_text(each.to_target_s));
    }
    text += '\n';
  }
  return text;
}

Json json_of(const Table& table, const std::vector<EntrantRuns>& runs,
             const std::vector<Network>& networks) {
  Json rows = Json::array();
  for (std::size_t k = 0; k < table.rows.size(); ++k) {
    const Row& row = table.rows[k];
    Json on = Json::array();
    for (std::size_t network = 0; network < networks.size(); ++network) {
      const NetworkFigures& each = row.networks[network];
      on.push_back({{"network", networks[network].name},
                    {"loss_after_equal_seconds", json_of(each.loss)},
                    {"seconds_to_target", each.to_target_s ? Json(*each.to_target_s) : Json()},
                    {"seconds_of_all_rounds", each.all_rounds_s}});
    }
    rows.push_back({{"name", row.name},
                    {"run", row.words},
                    {"searched", searched_json(runs[k])},
                    {"loss", json_of(row.loss)},
                    {"bytes_sent_per_node", row.bytes},
                    {"times_fewer_bytes", row.fewer},
                    {"state_floats_per_parameter", row.state_floats},
                    {"networks", std::move(on)}});
  }
  return {{"target_loss", table.target},
          {"equal_seconds", table.equal_seconds},
          {"rows", std::move(rows)}};
}

std::string plots(const std::vector<EntrantRuns>& runs, const Table& table,
                  const std::vector<Network>& networks) {
  std::vector<std::string> names;
  names.reserve(runs.size());
  for (const EntrantRuns& each : runs) {
    names.push_back(each.entrant.name);
  }
  std::vector<std::string> drawn;
  for (std::size_t network = 0; network < networks.size(); ++network) {
    std::vector<console::Curve> curves;
    for (const EntrantRuns& each : runs) {
      console::Curve curve{.name = each.entrant.name, .x = {}, .y = {}};
      for (const HistoryPoint& point : timed(each.histories.front(), each.round_times[network])) {
        curve.x.push_back(point.time_s);
        curve.y.push_back(point.loss);
      }
      curves.push_back(std::move(curve));
    }
    drawn.push_back(console::draw_plot(curves, {.title = networks[network].name,
                                                .x_label = "virtual seconds",
                                                .y_label = "loss",
                                                .log_x = true,
                                                .cut_diverged = true,
                                                .target = table.target}));
  }
  return plot_row(drawn, names);
}

}  // namespace sotto::bench
