#include <sotto/study/json/search.h>

#include <limits>
#include <optional>

#include <sotto/study/json/figures.h>
#include <sotto/study/json/score.h>
#include <sotto/study/json/simulation.h>
#include <sotto/study/plan/train_command.h>

namespace sotto::study {
namespace {

Json candidates_json(const PlanSearch& search) {
  Json candidates = Json::array();
  for (const Candidate& one : search.candidates()) {
    candidates.push_back(
        {{"name", one.run.name},
         {"predicted_s_per_round", one.predicted_seconds_per_round},
         {"may_take_longer", one.may_take_longer},
         {"predicted_bytes_per_round", one.bytes_per_round},
         {"predicted_bytes_per_round_within_groups", or_null(one.bytes_per_round_within)},
         {"spectral_gap", one.spectral_gap},
         {"step_work", one.step_work},
         {"encode_s_per_byte", one.codec.encode_s_per_byte},
         {"decode_s_per_byte", one.codec.decode_s_per_byte},
         {"simulated", search.simulated(one.run)}});
  }
  return candidates;
}

Json by_seed(const std::vector<std::optional<double>>& figures) {
  Json all = Json::array();
  for (const auto& figure : figures) {
    all.push_back(or_null(figure));
  }
  return all;
}

/// The score of a run that has the scenario's model and batch.
Json score_of(const PlanSearch& search, const PlannedRun& run) {
  const SimulationResult& result = run.simulated.result;
  const RunSpec& spec = run.candidate.run;
  if (spec.find("model") != nullptr || spec.find("batch") != nullptr) {
    return nullptr;
  }
  return score_json(search.score_terms(),
                    {.rounds = result.rounds,
                     .nodes = result.nodes,
                     .seconds = result.virtual_s,
                     .accuracy = result.final ? result.final->mean.accuracy
                                              : std::numeric_limits<double>::quiet_NaN()});
}

Json run_json(const PlanSearch& search, const PlannedRun& run, const Ranking& ranking) {
  Json found = {{"name", run.candidate.run.name},
                {"label", run.label},
                {"compressed", run.candidate.compressed},
                {"predicted_s_per_round", run.candidate.predicted_seconds_per_round},
                {"simulated_s_per_round", or_null(run.simulated_seconds_per_round())},
                {"prediction_error", or_null(run.error())},
                {"seconds", or_null(figure_of(run, {.goal = ranking.goal}))},
                {"seconds_by_seed", by_seed(run.times)},
                {"figure", or_null(figure_of(run, ranking))},
                {"money_by_seed", by_seed(run.money)},
                {"score", score_of(search, run)}};
  found.update(simulation_json(run.simulated.result));
  return found;
}

const char* ranked_by(const Ranking& ranking) {
  if (ranking.goal == Goal::target) {
    return ranking.money ? "money_to_target" : "time_to_target";
  }
  return ranking.money ? "money_per_epoch" : "time_per_epoch";
}

}  // namespace

Json search_json(const PlanSearch& search, const std::vector<PlannedRun>& runs,
                 const Verdict& verdict) {
  const auto words_of = [&](std::size_t run) { return runs[run].candidate.run.name; };
  Json refused = Json::array();
  for (const Refusal& refusal : search.refused()) {
    refused.push_back({{"name", refusal.run}, {"why", refusal.why}});
  }
  Json finished = Json::array();
  for (const PlannedRun& run : runs) {
    finished.push_back(run_json(search, run, search.ranking()));
  }
  const auto& winner = verdict.winner;
  return {{"sotto", SOTTO_VERSION},
          {"scenario", search.scenario().title},
          {"nodes", search.scenario().nodes},
          {"ranked_by", ranked_by(search.ranking())},
          {"rank_by", search.by_worst() ? "worst" : "mean"},
          {"codec_measured", search.codec_measured()},
          {"interrupted", search.interrupted()},
          {"winner", winner ? Json(words_of(*winner)) : Json(nullptr)},
          {"compress", winner ? Json(verdict.compress) : Json(nullptr)},
          {"over_allreduce", or_null(verdict.over_allreduce)},
          {"over_best_uncompressed", or_null(verdict.over_best_uncompressed)},
          {"verdict", verdict.lines},
          {"command", winner ? Json(train_command(runs[*winner].candidate.run, search.scenario(),
                                                  search.rounds()))
                             : Json(nullptr)},
          {"runs", finished},
          {"candidates", candidates_json(search)},
          {"strategies", nullptr},
          {"refused", refused}};
}

}  // namespace sotto::study
