#include <sotto/trainers/optimizer.h>

#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include <sotto/base/digest.h>
#include <sotto/base/error.h>
#include <sotto/base/names.h>
#include <sotto/base/start_threads.h>
#include <sotto/comm/session.h>
#include <sotto/compress/registry.h>
#include <sotto/kernels/vector.h>
#include <sotto/optim/registry.h>
#include <sotto/optim/step_rule_info.h>
#include <sotto/trainers/algorithm_setup.h>
#include <sotto/trainers/launch/launcher.h>
#include <sotto/trainers/meetings/model_average.h>
#include <sotto/trainers/meetings/store_collectives.h>
#include <sotto/trainers/node_transport.h>
#include <sotto/trainers/privacy_budget.h>
#include <sotto/trainers/result.h>

#include "internal/agreement/run_agreement.h"
#include "internal/agreement/run_settings.h"
#include "internal/optimizer/compression_watch.h"
#include "internal/optimizer/early_stop.h"
#include "internal/optimizer/gradient_parts.h"
#include "internal/optimizer/step_settings.h"
#include "internal/optimizer/whole_model.h"
#include "internal/optimizer/work_before.h"
#include "internal/reporting/run_reporter.h"

namespace sotto {
namespace {

OptimizerOptions with_place(OptimizerOptions options) {
  if (options.nodes == 0) {
    const LaunchedNode launched =
        launched_node("nodes", "set the number of nodes and this node's rank");
    options.nodes = launched.nodes;
    options.rank = launched.rank;
    if (options.rendezvous.empty() && options.nodes > 1) {
      options.rendezvous = launched.rendezvous;
    }
  }
  if (options.nodes == 1 && options.rendezvous.empty()) {
    options.rendezvous = "memory:";  // there is nobody to meet, and no port to take for it
  }
  if (options.nodes < 1) {
    refuse("nodes", fmt::format("{}", options.nodes), "at least one node is needed");
  }
  if (options.rank < 0 || options.rank >= options.nodes) {
    refuse("rank", fmt::format("{}", options.rank),
           fmt::format("it must be 0 to {}", options.nodes - 1));
  }
  if (options.weight && !is_weight(*options.weight)) {
    refuse("weight", fmt::format("{}", *options.weight), "it must be from 1e-12 to 1e15");
  }
  if (options.join != Join::none && options.privacy) {
    refuse("join", join_name(options.join),
           "a round without data would cost privacy: give all nodes the same number of steps");
  }
  if (options.timeout <= options.timeout.zero()) {
    refuse("timeout", fmt::format("{} ms", options.timeout.count()), "it must be positive");
  }
  return options;
}

/// "node 3: …", "node 3, round 7: …"
bool says_who(std::string_view message) {
  constexpr std::string_view kNode = "node ";
  return message.starts_with(kNode) && message.size() > kNode.size() &&
         message[kNode.size()] >= '0' && message[kNode.size()] <= '9';
}

/// `values` lie where the accelerator of these options works, if there is one.
void require_reached(const OptimizerOptions& options, std::span<const float> values,
                     std::string_view what) {
  if (options.accelerator && !values.empty() && !options.accelerator->reaches(values.data())) {
    refuse(what, "memory elsewhere",
           fmt::format("the accelerator, {}, wants them in its device's memory",
                       options.accelerator->name()));
  }
}

/// Also waits for a thread that is still writing the parameters.
void check_accelerator(const OptimizerOptions& options, std::span<const float> parameters) {
  if (!options.accelerator) {
    return;
  }
  if (const Status status = options.accelerator->finish(); !status.ok()) {
    throw Error(status.message());
  }
  require_reached(options, parameters, "parameters");
  const auto refuse_with = [&](std::string_view what) {
    refuse("accelerator", options.accelerator->name(),
           fmt::format("{} is for vectors of the host; leave one of the two out", what));
  };
  if (options.codec_threads != 1) {
    refuse_with("codec_threads");
  }
  if (options.metered) {
    refuse_with("metered");
  }
}

}  // namespace

Optimizer::Optimizer(OptimizerOptions options, std::span<float> parameters,
                     const ParameterLayout& layout)
    : options_(with_place(std::move(options))),
      early_stop_(std::make_shared<internal::EarlyStop>()),
      stop_request_(internal::EarlyStop::request(options_, early_stop_)),
      parameters_(parameters),
      layout_(complete_layout(layout, parameters.size())),
      model_(std::make_unique<internal::WholeModel>(parameters, options_.accelerator.get())),
      compression_(std::make_unique<internal::CompressionWatch>(options_.communication_interval)),
      parts_(std::make_unique<internal::GradientParts>()) {
  topology_ = make_job_topology(options_);
  const AcceleratorScope scope(options_.accelerator.get());
  if (options_.observer != nullptr && options_.report_every > 0 && !options_.accelerator) {
    options_.metered |= options_.observer->wants_health();
  }
  check_accelerator(options_, parameters_);
  options_ = resolved(std::move(options_), parameters_.size(), layout);
  AlgorithmSetup setup = make_algorithm_setup(options_, parameters_, layout, topology_);
  if (options_.own_step_rule) {
    options_.step_rule.rule = setup.step_rule->name();
  }
  if (options_.metered) {
    setup.compressor = make_metered(std::move(setup.compressor), compression_->start());
  }
  step_settings_ =
      std::make_unique<internal::StepSettings>(*setup.step_rule, options_.step_rule.learning_rate);
  setup.run_id = run_id();
  setup.terms = terms_ = std::make_shared<RoundTerms>();
  terms_->agreed_rate = options_.step_rule.learning_rate;
  const auto steps = setup.privacy;
  algorithm_ = make_algorithm(options_.algorithm, std::move(setup), &warnings_);
  if (Status status = model_->accelerator_status(); !status.ok()) {
    throw Error(status.message());
  }
  peers_ = algorithm_->peers();
  before_ = std::make_unique<internal::WorkBefore>(options_.rank, peers_.to);
  if (steps) {
    budget_ = std::make_unique<PrivacyBudget>(steps);
  }
  if (!options_.store) {
    options_.store = make_store(options_.rendezvous, options_.rank,
                                {.insecure = options_.insecure,
                                 .security = options_.security,
                                 .known_by = Deadline::after(options_.timeout, &stop_request_)});
  }
  check_transport(options_.transport, transport_options());
  session_ =
      make_session(options_.store, options_.rank, options_.nodes, options_.timeout, stop_request_);
  agreement_ = std::make_unique<internal::RunAgreement>(*session_, options_);
  reporter_ = std::make_unique<internal::RunReporter>(options_, *session_);
}

Optimizer::~Optimizer() {
  if (!refused_.ok()) {
    (void)ended_by(refused_);
  } else if (agreement_->entered() && !finished_ && std::uncaught_exceptions() > exceptions_) {
    (void)give_up({Fault::peer_lost, "an exception ended the program"});
  }
  // What lies with an accelerator is given back in turn.
  const AcceleratorScope scope(options_.accelerator.get());
  driver_.reset();
  transport_.reset();
  algorithm_.reset();
  early_stop_->end();
}

Status Optimizer::named(const Status& status) const {
  return status.with_context(fmt::format("node {}", options_.rank));
}

TransportOptions Optimizer::transport_options() const {
  TransportOptions transport = sotto::transport_options(peers_, options_.rank, options_.nodes);
  transport.run_id = run_id();
  transport.store = options_.store;
  transport.bind = options_.bind;
  transport.insecure = options_.insecure;
  transport.security = options_.security;
  transport.connect_timeout = options_.timeout;
  transport.stop = stop_request_;
  return transport;
}

Status Optimizer::connect() {
  if (driver_ || !status_.ok()) {
    return status_;
  }
  if (Status status = agreement_->agree([this] { return starting_point(); }); !status.ok()) {
    return ended_by(status);
  }
  if (options_.weight) {
    const auto share = agreement_->share(*options_.weight);
    if (!share.ok()) {
      return ended_by(share.status());
    }
    terms_->share = *share;
  }
  auto made = make_transport(options_.transport, transport_options());
  if (!made.ok()) {
    return ended_by(named(naming_timeout(made.status(), options_.timeout)));
  }
  transport_ = std::move(*made);
  try {
    driver_ = std::make_unique<Driver>(
        *algorithm_, *transport_,
        DriverOptions{
            .rank = options_.rank,
            .overlap = options_.overlap,
            .timeout = options_.timeout,
            .observer = options_.observer,
            .terms = terms_,
            .wait_fault =
                [this](std::span<const Rank> peers) { return agreement_->wait_fault(peers); },
            .given_up = [this] { return agreement_->given_up(); },
            .interrupted = options_.interrupted,
            .accelerator = options_.accelerator.get()});
  } catch (const Shortage& shortage) {
    return ended_by(named({Fault::io, shortage.what()}));
  }
  agreement_->watch_connections([this](Rank awaited) { return driver_->lost_neighbour(awaited); });
  stamp_settings();
  reporter_->clock().leave();
  return {};
}

Result<internal::StartingPoint> Optimizer::starting_point() const {
  internal::StartingPoint start{.agreement = agreement(), .done = round_};
  if (round_ == 0) {  // after a load each node has its own
    std::vector<float> room;
    const auto parameters = model_->parameters_on_host(room);
    if (!parameters.ok()) {
      return parameters.status();
    }
    start.parameters = sha256_hex(std::as_bytes(*parameters));
  }
  return start;
}

Status Optimizer::begin_step() {
  if (Status status = connect(); !status.ok() || begun_) {
    return status;
  }
  const auto from = reporter_->clock().now();
  Status status = start_round();
  reporter_->clock().leave(from);
  return status;
}

Status Optimizer::start_round() {
  if (Status status = begin_report(); !status.ok() || begun_) {
    return status;
  }
  early_stop_->end();  // from here on the nodes agree on an end
  if (Status status = agreement_->begin_round(round_); !status.ok()) {
    return status.fault() == Fault::ended ? status : ended_by(status);
  }
  begun_ = true;
  return ended_by(driver_->begin_round());
}

Status Optimizer::step(std::span<const float> gradient) {
  if (gradient.size() != parameters_.size()) {
    refuse("gradient", fmt::format("{} elements", gradient.size()),
           fmt::format("the parameters have {}", parameters_.size()));
  }
  require_reached(options_, gradient, "gradient");
  require_whole_step();
  if (Status status = connect(); !status.ok()) {
    return status;
  }
  reporter_->clock().enter(round_);
  Status status = start_round();
  if (status.fault() == Fault::ended) {
    return status;
  }
  if (status.ok() && budget_) {
    status = named(budget_->enter_step());
  }
  if (status.ok()) {
    status = enter_gradient();
  }
  return end_step(status.ok() ? driver_->gradient_ready(gradient) : status);
}

Status Optimizer::end_step(const Status& status) {
  if (keep_open(status)) {
    reporter_->clock().again();
    return status;
  }
  if (!status.ok()) {
    return ended_by(status);
  }
  refused_ = Status();
  begun_ = false;
  ++round_;
  note_warnings();
  reporter_->round_done(round_);
  reporter_->clock().done(round_ - 1);
  Status reported = reporter_->due(round_) ? report({}) : Status();
  reporter_->clock().leave();
  return reported;
}

bool Optimizer::keep_open(const Status& status) {
  // A frame that holds a NaN ends the run, for the driver too.
  if (!internal::is_refusal(status) || !status_.ok() || !driver_ || !driver_->status().ok()) {
    return false;
  }
  refused_ = status;
  return true;
}

bool Optimizer::takes_parts() const {
  const auto transport = std::ranges::find(transports(), options_.transport, &TransportInfo::name);
  return algorithm_->takes_parts() && transport != transports().end() && transport->any_order;
}

Status Optimizer::gradient_part(std::size_t first, std::span<const float> part) {
  require_part(first, part.size());
  require_reached(options_, part, "gradient part");
  if (Status status = connect(); !status.ok()) {
    return status;
  }
  reporter_->clock().pause();
  Status status = start_round();
  if (status.fault() == Fault::ended) {
    return status;
  }
  if (status.ok() && parts_->empty()) {
    status = enter_gradient();
  }
  if (status.ok()) {
    status = driver_->gradient_part(first, part);
  }
  reporter_->clock().resume();
  if (!keep_open(status)) {
    status = ended_by(status);  // which a step() after it returns
  }
  if (status.ok()) {
    parts_->add(first, part.size());
  }
  return status;
}

void Optimizer::require_part(std::size_t first, std::size_t elements) const {
  const auto refuse_part = [&](const Message& why) {
    refuse("gradient part", fmt::format("{} elements from {} on", elements, first), why);
  };
  if (!takes_parts()) {
    const auto cut = names_with(algorithms(), [](const AlgorithmInfo& info) {
      return info.separable && !info.cuts_itself;
    });
    const auto whole = names_with(step_rules(), std::not_fn(&StepRuleInfo::separable));
    refuse_part("this run takes gradients whole: parts need an algorithm with " +
                mention("buckets") +
                fmt::format(" ({}), another transport than nccl, no clipping, privacy or local "
                            "steps, and no {}",
                            word_list(cut), word_list(whole)));
  }
  if (first > parameters_.size() || elements > parameters_.size() - first) {
    refuse_part(fmt::format("there are {} parameters", parameters_.size()));
  }
  if (parts_->overlap(first, elements)) {
    refuse_part("some of them have been in another part of this step's gradient");
  }
}

Status Optimizer::step() {
  const std::size_t given = parts_->elements();
  if (status_.ok() && given != parameters_.size()) {
    refuse(
        "gradient", fmt::format("{} elements", given),
        fmt::format("the parameters have {}, and each is to be in one part", parameters_.size()));
  }
  parts_->clear();
  reporter_->clock().enter(round_);
  return end_step(driver_ && status_.ok() ? driver_->end_parts() : status_);
}

Status Optimizer::ended_by(Status fault) {
  if (fault.ok() || !status_.ok()) {
    return status_;
  }
  refused_ = Status();
  status_ = std::move(fault);
  if (!finished_) {
    status_ = agreement_->give_up(status_);
  }
  end_report();
  return status_;
}

Status Optimizer::give_up(const Status& cause) {
  if (!status_.ok() || finished_ || cause.ok()) {
    return status_;
  }
  return ended_by(says_who(cause.message()) ? cause : named(cause));
}

std::string Optimizer::agreement() const {
  return internal::run_settings_text(options_, layout_, *topology_, parameters_.size());
}

std::uint64_t Optimizer::run_id() const {
  const std::string settings = agreement();
  return std::stoull(sha256_hex(std::as_bytes(std::span(settings))).substr(0, 16), nullptr, 16);
}

std::optional<PrivacySpent> Optimizer::privacy() const {
  return budget_ ? std::optional(budget_->spent()) : std::nullopt;
}

void Optimizer::set_learning_rate(double learning_rate) {
  step_settings_->set_rate(learning_rate);
  stamp_settings();
}

double Optimizer::learning_rate() const { return step_settings_->rate(); }

void Optimizer::announce_settings(double learning_rate, std::string_view others) {
  step_settings_->announce(learning_rate, others);
  stamp_settings();
}

void Optimizer::stamp_settings() {
  if (driver_) {
    driver_->change_settings(step_settings_->stamp());
  }
}

void Optimizer::note_warnings() {
  for (const SettingsDifference& difference : driver_->take_differences()) {
    warn(fmt::format(
        "node {}: {}: the mean model follows the nodes' gradients weighted by their rates",
        options_.rank, terms_->describe(difference)));
  }
  for (std::string& text : driver_->take_warnings()) {
    warn(std::move(text));
  }
}

void Optimizer::warn(std::string text) {
  warnings_.push_back(std::move(text));
  reporter_->warn(warnings_.back());
}

void Optimizer::ask_to_stop() { agreement_->stop().ask(internal::EndReason::told); }

std::string Optimizer::end_reason() const { return agreement_->stop().why(); }

Status Optimizer::enter_gradient() { return agreement_->enter_round(round_); }

void Optimizer::require_whole_step() const {
  if (!parts_->empty()) {
    throw Error("gradient", "parts of it were given; end this step with step() first");
  }
}

}  // namespace sotto
