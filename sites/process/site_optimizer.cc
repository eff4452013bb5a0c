#include <sotto/sites/process/site_optimizer.h>

#include <utility>

#include "internal/site_optimizer_run.h"

namespace sotto {

SiteOptimizer::SiteOptimizer(const SiteOptions& options, std::unique_ptr<SiteFolder> folder,
                             std::span<float> parameters, const ParameterLayout& layout,
                             SiteListener listener)
    : run_(std::make_unique<Run>(options, std::move(folder), parameters, layout,
                                 std::move(listener))) {}
SiteOptimizer::SiteOptimizer(const SiteOptions& options, const std::string& state,
                             std::span<float> parameters, const ParameterLayout& layout,
                             SiteListener listener)
    : SiteOptimizer(options, state.empty() ? nullptr : std::make_unique<SiteFolder>(state),
                    parameters, layout, std::move(listener)) {}
SiteOptimizer::~SiteOptimizer() = default;

Status SiteOptimizer::connect() { return run_->connect(); }
Result<SiteStep> SiteOptimizer::step(std::span<const float> gradient, double loss) {
  return run_->step(gradient, loss);
}
Result<SiteStep> SiteOptimizer::relay() { return run_->relay(); }
void SiteOptimizer::evaluated(const Evaluation& quality) { run_->evaluated(quality); }
Status SiteOptimizer::finish() { return run_->finish(); }
Status SiteOptimizer::leave() { return run_->leave(); }
bool SiteOptimizer::trains() const { return run_->trains(); }
bool SiteOptimizer::over() const { return run_->over(); }
Round SiteOptimizer::round() const { return run_->round(); }
Round SiteOptimizer::next_step() const { return run_->next_step(); }
SiteReport SiteOptimizer::report() const { return run_->report(); }
SiteResult SiteOptimizer::result() const { return run_->result(); }

}  // namespace sotto
