#include <sotto/study/json/search.h>

#include <sotto/study/json/simulation.h>

namespace sotto::study {
namespace {

Json or_null(const auto& value) { return value ? Json(*value) : Json(); }

Json candidates_json(const PlanSearch& search) {
  Json candidates = Json::array();
  for (const Candidate& one : search.candidates()) {
    candidates.push_back({{"name", one.run.name},
                          {"predicted_s_per_round", one.predicted_seconds_per_round},
                          {"predicted_bytes_per_round", one.bytes_per_round},
                          {"spectral_gap", one.spectral_gap},
                          {"encode_s_per_byte", one.codec.encode_s_per_byte},
                          {"decode_s_per_byte", one.codec.decode_s_per_byte},
                          {"simulated", search.simulated(one.run)}});
  }
  return candidates;
}

Json run_json(const PlannedRun& run, Goal goal) {
  Json times = Json::array();
  for (const auto& time : run.times) {
    times.push_back(or_null(time));
  }
  Json found = {{"name", run.candidate.run.name},
                {"label", run.label},
                {"compressed", run.candidate.compressed},
                {"predicted_s_per_round", run.candidate.predicted_seconds_per_round},
                {"simulated_s_per_round", or_null(run.simulated_seconds_per_round())},
                {"prediction_error", or_null(run.error())},
                {"seconds", or_null(time_of(run, goal))},
                {"seconds_by_seed", times}};
  found.update(simulation_json(run.simulated.result));
  return found;
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
    finished.push_back(run_json(run, search.goal()));
  }
  const auto& winner = verdict.winner;
  return {{"sotto", SOTTO_VERSION},
          {"scenario", search.scenario().title},
          {"nodes", search.scenario().nodes},
          {"ranked_by", search.goal() == Goal::target ? "time_to_target" : "time_per_epoch"},
          {"rank_by", search.by_worst() ? "worst" : "mean"},
          {"codec_measured", search.codec_measured()},
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
          {"refused", refused}};
}

}  // namespace sotto::study
