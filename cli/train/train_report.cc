#include "train_report.h"

#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include <sotto/optim/privacy/privacy_json.h>
#include <sotto/study/json/figures.h>
#include <sotto/study/quality.h>
#include <sotto/study/units.h>

#include "terminal/dashboard_frame.h"

namespace sotto::cli {
namespace {

Json point_json(const HistoryPoint& point) {
  Json json = {{"round", point.round},
               {"time_s", point.time_s},
               {"loss", point.loss},
               {"consensus_distance", point.consensus_distance},
               {"bytes_per_node", point.bytes_per_node}};
  study::add_quality(point, json);
  return json;
}

std::string privacy_line(const PrivacySpent& privacy) {
  const bool limited = privacy.left != kUnlimitedSteps;
  return fmt::format("privacy: epsilon {:.4g} at delta {:g} after {}{}", privacy.epsilon,
                     privacy.delta, study::counted(privacy.steps, "step"),
                     limited ? fmt::format("; the budget allows {} more", privacy.left) : "");
}

/// Beside the bytes of all nodes: those of the method that most use.
std::string saving(const RunResult& result, double sent) {
  const double others =
      result.nodes * allreduce_bytes(result.nodes, result.dimension, result.rounds);
  return others > 0 && sent > 0
             ? fmt::format(" (all-reduce: {}, {:.1f} ×)", study::amount(others), others / sent)
             : "";
}

}  // namespace

TrainReport::TrainReport(const console::Output& output, const Progress& progress, Round rounds)
    : output_(output), progress_(progress), rounds_(rounds), bar_(progress.bar) {}

void TrainReport::warning(const std::string& text) {
  bar_.clear();
  console::warn(text);
}

void TrainReport::evaluated(const RunEvaluation& evaluation) {
  const HistoryPoint& point = evaluation.point;
  if (!output_.talks() || !progress_.lines) {
    return;
  }
  bar_.clear();
  if (!titled_) {
    output_.line(fmt::format("{:>8}  {:>9}  {:>11}  {:>9}  {:>13}  {:>10}", "round", "time", "loss",
                             study::quality_at(point).heading, "consensus", "sent/node"));
    titled_ = true;
  }
  output_.line(fmt::format("{:>8}  {:>7.2f} s  {:>11.5g}  {:>9}  {:>13.4g}  {:>10}", point.round,
                           point.time_s, point.loss,
                           quality_text(study::quality_at(point), quality_of(point)),
                           point.consensus_distance, study::amount(point.bytes_per_node)));
}

void TrainReport::summary(const RunResult& result) {
  bar_.clear();
  const auto sent = result.bytes_sent_per_node();
  const auto total = std::accumulate(sent.begin(), sent.end(), std::uint64_t{0});
  output_.line(fmt::format(
      "{}, {}, {}, {} sent in all{}",
      study::counted(static_cast<std::uint64_t>(result.nodes), "node"),
      study::counted(result.rounds, "round"), study::counted(result.dimension, "parameter"),
      study::amount(static_cast<double>(total)), saving(result, static_cast<double>(total))));
  output_.line(fmt::format(
      "time {:.2f} s: gradients {:.2f} s, compression and mixing {:.2f} s, waiting {:.2f} s",
      result.time.wall_s, result.time.compute_s, result.time.algorithm_s, result.time.wait_s));
  if (std::isfinite(result.final.rmse)) {
    output_.line(fmt::format("on the test set: R² {}, RMSE {:.4g} in the file's units",
                             quality_text(study::kR2, result.final.r2), result.final.rmse));
  }
  const double first = result.history.empty() ? result.final.loss : result.history.front().loss;
  if (diverged(first, result.final.loss)) {
    output_.line(fmt::format(
        "the loss ends at {:.4g}, and was {:.4g} when it was first evaluated: the run diverged or "
        "overfitted; lower --lr",
        result.final.loss, first));
  }
  if (result.privacy) {
    output_.line(privacy_line(*result.privacy));
  }
  if (result.counters.saturated > 0) {
    output_.line(fmt::format("{} values did not fit the compressor's range and were clamped",
                             result.counters.saturated));
  }
  if (result.counters.set_aside > 0) {
    output_.line(fmt::format("{} of neighbours had no influence: the rule set them aside",
                             study::counted(result.counters.set_aside, "model")));
  }
  if (result.counters.drifted > 0) {
    output_.line(fmt::format("{} of neighbours had drifted and were replaced",
                             study::counted(result.counters.drifted, "replica")));
  }
  if (result.counters.staleness > 0) {
    const double gradients = static_cast<double>(result.rounds) * result.nodes;
    output_.line(fmt::format(
        "gradients were applied {:.2f} averagings after they were taken, {} at most",
        static_cast<double>(result.counters.staleness) / gradients, result.counters.most_stale));
  }
}

void TrainReport::round_done(Round done) {
  bar_.bar(done, rounds_, fmt::format("round {}/{}", done, rounds_));
}

bool diverged(double first_loss, double final_loss) {
  return !std::isfinite(final_loss) || !(final_loss <= first_loss);
}

Json train_json(const RunResult& result, const Json& config) {
  Json edges = Json::array();
  for (const LinkTraffic& edge : result.edges) {
    edges.push_back(
        {{"from", edge.from}, {"to", edge.to}, {"bytes", edge.bytes}, {"frames", edge.frames}});
  }
  Json history = Json::array();
  for (const HistoryPoint& point : result.history) {
    history.push_back(point_json(point));
  }
  Json json = {
      {"sotto", SOTTO_VERSION},
      {"config", config},
      {"nodes", result.nodes},
      {"rounds", result.rounds},
      {"dimension", result.dimension},
      {"bytes_sent_per_node", result.bytes_sent_per_node()},
      {"frames_sent_per_node", result.frames_sent_per_node()},
      {"bytes_per_edge", edges},
      {"final",
       {{"loss", result.final.loss}, {"consensus_distance", result.final.consensus_distance}}},
      {"history", history},
      {"time",
       {{"wall_s", result.time.wall_s},
        {"compute_s", result.time.compute_s},
        {"algorithm_s", result.time.algorithm_s},
        {"wait_s", result.time.wait_s},
        {"slowest_s", result.time.slowest_s}}},
      {"counters",
       {{"saturated", result.counters.saturated},
        {"bad_frames", result.counters.bad_frames},
        {"drifted", result.counters.drifted},
        {"staleness", result.counters.staleness},
        {"most_stale", result.counters.most_stale},
        {"set_aside", result.counters.set_aside},
        {"other_settings", result.counters.other_settings}}},
      {"privacy", result.privacy ? privacy_json(*result.privacy) : Json()},
      {"parameters_sha256", result.parameters_sha256}};
  study::add_quality(result.final, json["final"]);
  if (!result.dumped.ok()) {
    json[kDumpFault] = result.dumped.message();
  }
  return json;
}

}  // namespace sotto::cli
