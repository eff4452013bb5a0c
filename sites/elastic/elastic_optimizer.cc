#include <sotto/sites/elastic/elastic_optimizer.h>

#include <utility>

#include "internal/elastic_optimizer_run.h"

namespace sotto {

ElasticOptimizer::ElasticOptimizer(const ElasticOptions& options, std::span<float> parameters,
                                   const ParameterLayout& layout, SiteListener listener)
    : run_(std::make_unique<Run>(options, parameters, layout, std::move(listener))) {}
ElasticOptimizer::~ElasticOptimizer() = default;

Status ElasticOptimizer::connect() { return run_->connect(); }
Result<ElasticStep> ElasticOptimizer::step(std::span<const float> gradient, double loss) {
  return run_->step(gradient, loss);
}
bool ElasticOptimizer::takes_parts() const { return run_->takes_parts(); }
Status ElasticOptimizer::gradient_part(std::size_t first, std::span<const float> part) {
  return run_->gradient_part(first, part);
}
Result<ElasticStep> ElasticOptimizer::step_by_parts(double loss) {
  return run_->step_by_parts(loss);
}
Result<ElasticStep> ElasticOptimizer::wait() { return run_->wait(); }
void ElasticOptimizer::cancel() { run_->cancel(); }
void ElasticOptimizer::evaluated(const Evaluation& quality) { run_->evaluated(quality); }
Status ElasticOptimizer::finish() { return run_->finish(); }
bool ElasticOptimizer::over() const { return run_->over(); }
Round ElasticOptimizer::round() const { return run_->round(); }
Round ElasticOptimizer::next_step() const { return run_->next_step(); }
SiteReport ElasticOptimizer::report() const { return run_->report(); }
SiteResult ElasticOptimizer::result() const { return run_->result(); }

}  // namespace sotto
