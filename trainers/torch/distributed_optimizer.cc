#include <sotto/trainers/torch/distributed_optimizer.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/utils.h>

#include <sotto/base/error.h>

#include "distributed_run.h"

namespace sotto::torch {
namespace {

/// The rate of the one group when the step rule is sotto's.
class RateOptions final : public ::torch::optim::OptimizerCloneableOptions<RateOptions> {
 public:
  explicit RateOptions(double rate) : rate_(rate) {}
  double get_lr() const override { return rate_; }
  void set_lr(const double rate) override { rate_ = rate; }

 private:
  double rate_;
};

std::unique_ptr<::torch::optim::OptimizerOptions> defaults_of(
    const std::unique_ptr<::torch::optim::Optimizer>& local) {
  require_steps(local.get());
  return local->defaults().clone();
}

std::vector<std::size_t> sizes_of(const ParameterGroups& groups) {
  std::vector<std::size_t> sizes;
  std::ranges::transform(groups, std::back_inserter(sizes),
                         [](const auto& group) { return group.params().size(); });
  return sizes;
}

/// Optimizer::zero_grad(bool), which older versions of libtorch lack.
void clear_gradients(ParameterGroups& groups, bool set_to_none) {
  for (auto& group : groups) {
    for (::torch::Tensor& parameter : group.params()) {
      ::torch::Tensor& gradient = parameter.mutable_grad();
      if (!gradient.defined()) {
        continue;
      }
      if (set_to_none) {
        gradient.reset();
      } else {
        gradient.detach_().zero_();
      }
    }
  }
}

}  // namespace

DistributedOptimizer::DistributedOptimizer(std::unique_ptr<::torch::optim::Optimizer> local,
                                           OptimizerOptions options, const NamedParameters& names)
    : Optimizer(ParameterGroups(), defaults_of(local)) {
  run_ = std::make_unique<Run>();
  run_->options = std::move(options);
  run_->names = names;
  std::swap(param_groups_, local->param_groups());
  std::swap(state_, local->state());
  run_->local = std::move(local);
  build();
}

DistributedOptimizer::DistributedOptimizer(
    std::unique_ptr<::torch::optim::OptimizerOptions> defaults,
    std::vector<::torch::Tensor> parameters, OptimizerOptions options, const NamedParameters& names)
    : Optimizer(std::move(parameters), std::move(defaults)) {
  run_ = std::make_unique<Run>();
  run_->rate = options.step_rule.learning_rate;
  run_->options = std::move(options);
  run_->names = names;
  build();
}

void DistributedOptimizer::build() {
  Run& run = *run_;
  if (run.local == nullptr && param_groups_.size() > 1) {
    throw Error(
        "a step rule of sotto's has one learning rate, and so one parameter group: give all "
        "parameters when the optimizer is made");
  }
  OptimizerOptions options = run.options;
  if (run.node) {
    options.store = run.node->options().store;  // where other nodes may be waiting
    run.node.reset();
    run.shown_warnings = 0;
    run.rule = nullptr;
  }
  run.flat.emplace(parameters_in(param_groups_), run.names);
  options.job.emplace_back("frozen-parameters", run.flat->frozen_digest());
  if (run.local == nullptr) {
    run.flat->take_sparse_gradients();
  } else {
    prepare_local(options);
  }
  run.group_sizes = sizes_of(param_groups_);
  run.node.emplace(std::move(options), run.flat->values(), run.flat->layout());
  if (run.rule != nullptr) {
    // A single node can skip as torch does; several would have to agree on what they skip.
    run.rule->skip_missing(run.node->options().nodes == 1);
  }
  if (!run.buffers.empty()) {
    run.node->carry_along(run.buffers.values());
  }
}

void DistributedOptimizer::prepare_local(OptimizerOptions& options) {
  Run& run = *run_;
  to_float32(state_);
  if (run.group_sizes != sizes_of(param_groups_)) {
    // What is changed in the groups that there are is announced to the others later.
    run.local_settings = optimizer_settings(*run.local, param_groups_);
    run.agreed = run.announced = group_options(param_groups_);
  }
  options.job.insert(options.job.end(), run.local_settings.begin(), run.local_settings.end());
  options.job.emplace_back("torch-optimizer-state", state_text(param_groups_, state_));
  options.step_rule.learning_rate = run.agreed.rates.empty() ? 0 : run.agreed.rates.front();
  if (takes_sparse_gradients(*run.local)) {
    run.flat->take_sparse_gradients();
  }
  options.own_step_rule = [this] {
    check(run_->rule == nullptr, "a torch optimizer makes the steps of one node");
    auto rule = std::make_unique<LocalOptimizer>(*run_->local, param_groups_, state_, *run_->flat);
    run_->rule = rule.get();
    return rule;
  };
}

void DistributedOptimizer::settle() {
  Run& run = *run_;
  if (run.settled) {
    return;
  }
  if (!run.node || run.group_sizes != sizes_of(param_groups_) ||
      !run.flat->holds(parameters_in(param_groups_))) {
    build();
  }
  run.settled = true;
}

DistributedOptimizer::DistributedOptimizer(const NamedParameters& parameters,
                                           OptimizerOptions options)
    : DistributedOptimizer(std::make_unique<RateOptions>(options.step_rule.learning_rate),
                           parameters.values(), options, parameters) {}

DistributedOptimizer::DistributedOptimizer(std::vector<::torch::Tensor> parameters,
                                           OptimizerOptions options)
    : DistributedOptimizer(std::make_unique<RateOptions>(options.step_rule.learning_rate),
                           std::move(parameters), options, NamedParameters()) {}

DistributedOptimizer::DistributedOptimizer(DistributedOptimizer&& other) noexcept
    : Optimizer(std::move(other)), run_(std::move(other.run_)) {
  follow();
}

DistributedOptimizer& DistributedOptimizer::operator=(DistributedOptimizer&& other) noexcept {
  if (this != &other) {
    run_ = std::move(other.run_);
    param_groups_ = std::move(other.param_groups_);
    state_ = std::move(other.state_);
    defaults_ = std::move(other.defaults_);
    follow();
  }
  return *this;
}

DistributedOptimizer::~DistributedOptimizer() = default;

void DistributedOptimizer::follow() {
  if (run_ != nullptr && run_->rule != nullptr) {
    run_->rule->follow(param_groups_, state_);
  }
}

const sotto::Optimizer& DistributedOptimizer::node() const {
  if (!run_->node) {
    throw Error("what became of the parameters since the optimizer was made cannot be trained");
  }
  return *run_->node;
}

void DistributedOptimizer::require_not_ended() const {
  if (run_->ended) {
    throw Error("the run is over: no step follows finish()");
  }
}

void DistributedOptimizer::begin() {
  require_not_ended();
  settle();
  run_->flat->require_unchanged();
  if (sizes_of(param_groups_) != run_->group_sizes) {
    throw Error(
        "parameter groups were changed after the nodes had met: give all parameters before the "
        "first step, and freeze meanwhile what is to be trained later");
  }
  if (run_->rule == nullptr) {
    if (!run_->flat->frozen_since().empty()) {
      throw Error(
          "a step rule of sotto's cannot leave out a layer that is frozen after the nodes have "
          "met: freeze it before the first step, or give a torch optimizer");
    }
    const double rate = param_groups_.front().options().get_lr();
    if (rate != run_->rate) {
      run_->node->set_learning_rate(rate);
      run_->rate = rate;
    }
  } else {
    announce_options();
  }
  start_buffers();
  run_->begun = true;
  require_ok(run_->node->begin_step());
}

void DistributedOptimizer::carry_buffers(const NamedParameters& buffers) {
  if (run_->settled || !run_->buffers.empty()) {
    throw Error("carry_buffers comes once, before the first step and before load");
  }
  run_->buffers = Buffers(buffers);
  run_->node->carry_along(run_->buffers.values());
}

void DistributedOptimizer::start_buffers() {
  Buffers& buffers = run_->buffers;
  if (std::exchange(run_->own_buffers, true) || buffers.values().empty()) {
    return;
  }
  buffers.gather();
  require_ok(run_->node->take_from_node_0(buffers.values()));
  buffers.scatter(buffers.values());
}

void DistributedOptimizer::announce_options() {
  GroupOptions now = group_options(param_groups_);
  std::vector<std::size_t> frozen = run_->flat->frozen_since();
  if (now == run_->announced && frozen == run_->announced_frozen) {
    return;
  }
  const GroupOptions& agreed = run_->agreed;
  const bool rate_alone = now.others == agreed.others && frozen.empty() &&
                          (now.rates == agreed.rates || (now.one_rate() && agreed.one_rate()));
  run_->node->announce_settings(
      now.rates.front(), rate_alone
                             ? std::string()
                             : fmt::format("{} {} frozen {}", fmt::join(now.rates, ","),
                                           fmt::join(now.others, ","), fmt::join(frozen, ",")));
  run_->announced = std::move(now);
  run_->announced_frozen = std::move(frozen);
}

void DistributedOptimizer::zero_grad() {
  if (run_->early) {
    run_->early->forget();
  }
  Optimizer::zero_grad();
  begin();
}

void DistributedOptimizer::zero_grad(bool set_to_none) {
  if (run_->early) {
    run_->early->forget();
  }
  clear_gradients(param_groups_, set_to_none);
  begin();
}

bool DistributedOptimizer::start_in_backward() {
  begin();
  if (run_->node->options().nodes == 1 || !run_->node->takes_parts()) {
    return false;
  }
  if (!run_->early) {
    run_->early.emplace(*run_->flat, [run = run_.get()](std::size_t first, auto part) {
      return run->node->gradient_part(first, part);
    });
  }
  run_->early->start();
  run_->started_with = group_options(param_groups_);
  return true;
}

::torch::Tensor DistributedOptimizer::step(LossClosure closure) {
  const bool early = run_->early && run_->early->started();
  if (early && group_options(param_groups_) != run_->started_with) {
    throw Error(
        "the learning rate or another option was changed between start_in_backward() and step(), "
        "when some parameters had been stepped with the old one: change it before zero_grad()");
  }
  begin();
  ::torch::Tensor loss;
  if (closure) {
    const ::torch::AutoGradMode with_gradients(true);
    loss = closure();
    run_->flat->require_unchanged();
  }
  if (early) {
    run_->early->finish();
    require_ok(run_->node->step());
  } else {
    run_->flat->gather_gradients();
    require_ok(run_->node->step(run_->flat->gradient()));
  }
  run_->begun = false;
  run_->flat->publish();
  show_warnings();
  return loss;
}

void DistributedOptimizer::skip_step() {
  if (run_->early) {
    run_->early->forget();
  }
  begin();
  run_->flat->leave_out_gradients();
  require_ok(run_->node->step(std::vector<float>(run_->flat->values().size())));
  run_->begun = false;
  run_->flat->publish();
  show_warnings();
}

void DistributedOptimizer::show_warnings() {
  const auto& warnings = run_->node->warnings();
  while (run_->shown_warnings < warnings.size()) {
    const std::string& text = warnings[run_->shown_warnings++];  // a handler may throw
    TORCH_WARN("sotto: ", text);
  }
}

void DistributedOptimizer::finish() { end(false); }

void DistributedOptimizer::finish_with_mean() { end(true); }

void DistributedOptimizer::end(bool take_mean) {
  require_not_ended();
  settle();
  sotto::Optimizer& node = *run_->node;
  require_ok(node.connect());
  start_buffers();         // a node without data may have taken no step
  run_->buffers.gather();  // also for means that others ask for meanwhile (options.join)
  if (take_mean && node.options().nodes > 1) {
    const auto values = run_->flat->values();
    std::vector<float> mean(values.size() + run_->buffers.values().size());
    run_->ended = true;
    require_ok(node.finish_with_mean(mean).status());
    std::copy_n(mean.begin(), values.size(), values.begin());
    run_->flat->publish();
    run_->buffers.scatter(std::span(mean).subspan(values.size()));
  } else {
    run_->ended = true;
    require_ok(node.finish());
    run_->flat->publish();  // after steps without data (options.join)
  }
}

double DistributedOptimizer::with_mean(const std::function<void()>& use) {
  require_not_ended();
  if (run_->begun) {
    throw Error("with_mean comes after step() and before the next zero_grad()");
  }
  settle();
  run_->flat->require_unchanged();
  start_buffers();
  run_->buffers.gather();
  const auto values = run_->flat->values();
  std::vector<float> mean(values.size() + run_->buffers.values().size());
  const auto distance = run_->node->mean_model(mean);
  require_ok(distance.status());
  const auto of_buffers = std::span(mean).subspan(values.size());
  // Between two steps nobody but the caller uses the values; what is sent now was encoded before.
  std::swap_ranges(values.begin(), values.end(), mean.begin());
  const auto take_back = [&] {
    std::copy_n(mean.begin(), values.size(), values.begin());
    run_->flat->publish();
    run_->buffers.scatter(run_->buffers.values());
  };
  run_->flat->publish();
  run_->buffers.scatter(of_buffers);
  try {
    use();
  } catch (...) {
    take_back();
    throw;
  }
  take_back();
  return *distance;
}

void DistributedOptimizer::give_up(const std::string& reason) {
  (void)run_->node->give_up({Fault::peer_lost, reason});
}

void DistributedOptimizer::evaluated(double loss, double accuracy) {
  require_ok(run_->node->evaluated(loss, accuracy));
}

}  // namespace sotto::torch
