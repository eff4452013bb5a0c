#include <sotto/study/json/score.h>

#include <cmath>

namespace sotto::study {

Json score_json(const ScoreTerms& terms, const ScoredRun& run) {
  if (!terms.flops_per_round || !(run.seconds > 0)) {
    return nullptr;
  }
  const double per_s = *terms.flops_per_round * static_cast<double>(run.rounds) *
                       static_cast<double>(run.nodes) / run.seconds;
  const bool scored = !std::isnan(run.accuracy);
  return {{"flops_per_s", per_s},
          {"regulated", scored ? Json(regulated_score(per_s, run.accuracy, terms.test_examples))
                               : Json(nullptr)}};
}

}  // namespace sotto::study
