#include <sotto/trainers/torch/distributed_optimizer.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/optim/lbfgs.h>
#include <torch/serialize/archive.h>
#include <torch/utils.h>

#include <sotto/base/error.h>

#include "buffers.h"
#include "early_gradient.h"
#include "flat_parameters.h"
#include "local_optimizer.h"

namespace sotto::torch {
namespace {

constexpr const char* kStateKey = "sotto";
constexpr const char* kRateKey = "sotto_learning_rate";

std::string buffer_key(std::size_t number) { return fmt::format("sotto_buffer_{}", number); }

/// The rate of the one group when the step rule is sotto's.
class RateOptions final : public ::torch::optim::OptimizerCloneableOptions<RateOptions> {
 public:
  explicit RateOptions(double rate) : rate_(rate) {}
  double get_lr() const override { return rate_; }
  void set_lr(const double rate) override { rate_ = rate; }

 private:
  double rate_;
};

void require_ok(const Status& status) {
  if (!status.ok()) {
    throw RunFault(status);
  }
}

std::vector<::torch::Tensor> parameters_in(const ParameterGroups& groups) {
  std::vector<::torch::Tensor> all;
  for (const auto& group : groups) {
    all.insert(all.end(), group.params().begin(), group.params().end());
  }
  return all;
}

std::unique_ptr<::torch::optim::OptimizerOptions> defaults_of(
    const std::unique_ptr<::torch::optim::Optimizer>& local) {
  if (local == nullptr) {
    refuse("optimizer", "null", "give the torch optimizer that makes a node's steps");
  }
  if (dynamic_cast<const ::torch::optim::LBFGS*>(local.get()) != nullptr) {
    refuse("optimizer", "LBFGS", "it evaluates the loss several times a step; use SGD or Adam");
  }
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

std::vector<double> rates_of(const ParameterGroups& groups) {
  std::vector<double> rates;
  std::ranges::transform(groups, std::back_inserter(rates),
                         [](const auto& group) { return group.options().get_lr(); });
  return rates;
}

}  // namespace

/// What a node consists of, in the order in which the parts use each other.
struct DistributedOptimizer::Run {
  Run(const std::vector<::torch::Tensor>& parameters, const NamedParameters& names)
      : flat(parameters, names) {}

  /// Builds this node's side on `flat`.
  void make_node(OptimizerOptions options) {
    options.job.emplace_back("frozen-parameters", flat.frozen_digest());
    node = std::make_unique<sotto::Optimizer>(std::move(options), flat.values(), flat.layout());
  }

  FlatParameters flat;
  Buffers buffers;
  bool own_buffers = false;  ///< this node's are not those of its start any more
  std::unique_ptr<::torch::optim::Optimizer> local;  ///< null with a step rule of sotto's
  LocalOptimizer* rule = nullptr;                    ///< the node's, around `local`
  double rate = 0;                                   ///< as the step rule of sotto's has it
  GroupOptions agreed;                               ///< of the caller's groups at the start
  GroupOptions announced;                            ///< as the others know them
  std::unique_ptr<sotto::Optimizer> node;
  bool ended = false;                    ///< finish() was called
  bool begun = false;                    ///< a round
  std::vector<std::size_t> group_sizes;  ///< of the caller's groups
  std::vector<double> rates;             ///< of the groups when `early` was started
  std::optional<EarlyGradient> early;    ///< once it was asked for
};

DistributedOptimizer::DistributedOptimizer(std::unique_ptr<::torch::optim::Optimizer> local,
                                           OptimizerOptions options, const NamedParameters& names)
    : Optimizer(ParameterGroups(), defaults_of(local)) {
  run_ = std::make_unique<Run>(parameters_in(local->param_groups()), names);
  run_->local = std::move(local);
  options.job.emplace_back("torch-optimizer", optimizer_text(*run_->local));
  run_->agreed = run_->announced = group_options(run_->local->param_groups());
  options.step_rule.learning_rate = run_->agreed.rates.empty() ? 0 : run_->agreed.rates.front();
  options.own_step_rule = [this] {
    check(run_->rule == nullptr, "a torch optimizer makes the steps of one node");
    auto rule = std::make_unique<LocalOptimizer>(*run_->local, param_groups_, state_, run_->flat);
    run_->rule = rule.get();
    return rule;
  };
  run_->make_node(std::move(options));
  // A single node can skip as torch does; several would have to agree on what they skip.
  run_->rule->skip_missing(run_->node->options().nodes == 1);
  run_->group_sizes = sizes_of(param_groups_);
}

DistributedOptimizer::DistributedOptimizer(
    std::unique_ptr<::torch::optim::OptimizerOptions> defaults,
    std::vector<::torch::Tensor> parameters, OptimizerOptions options, const NamedParameters& names)
    : Optimizer(std::move(parameters), std::move(defaults)) {
  run_ = std::make_unique<Run>(param_groups_.front().params(), names);
  run_->rate = options.step_rule.learning_rate;
  run_->make_node(std::move(options));
  run_->group_sizes = sizes_of(param_groups_);
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

const sotto::Optimizer& DistributedOptimizer::node() const { return *run_->node; }

void DistributedOptimizer::require_not_ended() const {
  if (run_->ended) {
    throw Error("the run is over: no step follows finish()");
  }
}

void DistributedOptimizer::begin() {
  require_not_ended();
  run_->flat.require_unchanged();
  if (sizes_of(param_groups_) != run_->group_sizes) {
    throw Error("parameter groups were changed after the optimizer was made: make a new one");
  }
  if (run_->rule == nullptr) {
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
  if (run_->begun || run_->node->round() != 0 || !run_->buffers.empty()) {
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
  if (now == run_->announced) {
    return;
  }
  const GroupOptions& agreed = run_->agreed;
  const bool rate_alone = now.others == agreed.others &&
                          (now.rates == agreed.rates || (now.one_rate() && agreed.one_rate()));
  run_->node->announce_settings(
      now.rates.front(),
      rate_alone ? std::string()
                 : fmt::format("{} {}", fmt::join(now.rates, ","), fmt::join(now.others, ",")));
  run_->announced = std::move(now);
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
    run_->early.emplace(run_->flat, *run_->node);
  }
  run_->early->start();
  run_->rates = rates_of(param_groups_);
  return true;
}

::torch::Tensor DistributedOptimizer::step(LossClosure closure) {
  const bool early = run_->early && run_->early->started();
  if (early && rates_of(param_groups_) != run_->rates) {
    throw Error(
        "the learning rate was changed between start_in_backward() and step(), when some "
        "parameters "
        "had been stepped with the old one: change it before zero_grad()");
  }
  begin();
  ::torch::Tensor loss;
  if (closure) {
    const ::torch::AutoGradMode with_gradients(true);
    loss = closure();
    run_->flat.require_unchanged();
  }
  if (early) {
    run_->early->finish();
    require_ok(run_->node->step());
  } else {
    run_->flat.gather_gradients();
    require_ok(run_->node->step(run_->flat.gradient()));
  }
  run_->begun = false;
  run_->flat.publish();
  return loss;
}

void DistributedOptimizer::skip_step() {
  if (run_->early) {
    run_->early->forget();
  }
  begin();
  run_->flat.leave_out_gradients();
  require_ok(run_->node->step(std::vector<float>(run_->flat.values().size())));
  run_->begun = false;
  run_->flat.publish();
}

void DistributedOptimizer::finish() { end(false); }

void DistributedOptimizer::finish_with_mean() { end(true); }

void DistributedOptimizer::end(bool take_mean) {
  require_not_ended();
  sotto::Optimizer& node = *run_->node;
  require_ok(node.connect());
  run_->buffers.gather();  // also for means that others ask for meanwhile (options.join)
  if (take_mean && node.options().nodes > 1) {
    const auto values = run_->flat.values();
    std::vector<float> mean(values.size() + run_->buffers.values().size());
    run_->ended = true;
    require_ok(node.finish_with_mean(mean).status());
    std::copy_n(mean.begin(), values.size(), values.begin());
    run_->flat.publish();
    run_->buffers.scatter(std::span(mean).subspan(values.size()));
  } else {
    run_->ended = true;
    require_ok(node.finish());
    run_->flat.publish();  // after steps without data (options.join)
  }
}

double DistributedOptimizer::with_mean(const std::function<void()>& use) {
  require_not_ended();
  if (run_->begun) {
    throw Error("with_mean comes after step() and before the next zero_grad()");
  }
  run_->flat.require_unchanged();
  run_->buffers.gather();
  const auto values = run_->flat.values();
  std::vector<float> mean(values.size() + run_->buffers.values().size());
  const auto distance = run_->node->mean_model(mean);
  require_ok(distance.status());
  const auto of_buffers = std::span(mean).subspan(values.size());
  // Between two steps nobody but the caller uses the values; what is sent now was encoded before.
  std::swap_ranges(values.begin(), values.end(), mean.begin());
  const auto take_back = [&] {
    std::copy_n(mean.begin(), values.size(), values.begin());
    run_->flat.publish();
    run_->buffers.scatter(run_->buffers.values());
  };
  run_->flat.publish();
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

void DistributedOptimizer::save(::torch::serialize::OutputArchive& archive) const {
  require_ok(run_->node->drain());
  ByteBuffer state;
  run_->node->save(state);
  const auto bytes = state.bytes();
  auto tensor = ::torch::empty({static_cast<std::int64_t>(bytes.size())}, ::torch::kByte);
  std::copy(bytes.begin(), bytes.end(), static_cast<std::byte*>(tensor.data_ptr()));
  archive.write(kStateKey, tensor, /*is_buffer=*/true);
  for (std::size_t i = 0; i < run_->buffers.all().size(); ++i) {
    archive.write(buffer_key(i), run_->buffers.all()[i].detach().cpu(), /*is_buffer=*/true);
  }
  if (run_->rule == nullptr) {
    archive.write(kRateKey, c10::IValue(param_groups_.front().options().get_lr()));
  }
}

void DistributedOptimizer::load_buffers(::torch::serialize::InputArchive& archive) {
  const ::torch::NoGradGuard no_gradients;
  const auto& buffers = run_->buffers.all();
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    ::torch::Tensor saved;
    if (!archive.try_read(buffer_key(i), saved, /*is_buffer=*/true) ||
        saved.sizes() != buffers[i].sizes() || saved.scalar_type() != buffers[i].scalar_type()) {
      throw RunFault({Fault::malformed, fmt::format("the archive does not hold buffer {} of {} of "
                                                    "this model",
                                                    i, buffers.size())});
    }
    ::torch::Tensor(buffers[i]).copy_(saved);
  }
  run_->own_buffers = true;
}

void DistributedOptimizer::load(::torch::serialize::InputArchive& archive) {
  sotto::Optimizer& node = *run_->node;
  if (node.round() != 0 || run_->begun) {
    throw Error("load comes before the first step: make a new optimizer, and load into that");
  }
  ::torch::Tensor tensor;
  if (!archive.try_read(kStateKey, tensor, /*is_buffer=*/true) ||
      tensor.scalar_type() != ::torch::kByte) {
    throw RunFault({Fault::malformed, "the archive holds no state of a DistributedOptimizer"});
  }
  tensor = tensor.contiguous();
  ByteReader in(std::as_bytes(std::span(static_cast<const char*>(tensor.data_ptr()),
                                        static_cast<std::size_t>(tensor.numel()))));
  require_ok(node.connect());  // which compares initial parameters
  run_->flat.attach();
  require_ok(node.load(in));
  if (!in.finished()) {
    throw RunFault({Fault::malformed, "the saved state goes on where it should end"});
  }
  run_->flat.publish();
  load_buffers(archive);
  c10::IValue rate;
  if (run_->rule == nullptr && archive.try_read(kRateKey, rate) && rate.isDouble()) {
    param_groups_.front().options().set_lr(rate.toDouble());
  }
}

}  // namespace sotto::torch
