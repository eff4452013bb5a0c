#include <sotto/study/train/elastic_plan.h>

#include <sotto/study/train/train_checks.h>

namespace sotto::study {

ElasticOptions make_elastic_options(const TrainOptions& options, const ElasticSettings& given,
                                    Round steps, std::optional<double> timeout_s) {
  ElasticSettings settings = given;
  settings.training = options;
  settings.seed = options.seed;
  settings.rounds = exchanges_in(steps, options);
  settings.timeout_s = timeout_s.value_or(settings.timeout_s);
  return options_of(settings);
}

}  // namespace sotto::study
