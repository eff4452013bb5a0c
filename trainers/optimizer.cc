#include <sotto/trainers/optimizer.h>

#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/comm/session.h>
#include <sotto/comm/transport.h>
#include <sotto/compress/metered.h>
#include <sotto/trainers/algorithm_setup.h>
#include <sotto/trainers/driver.h>
#include <sotto/trainers/observer.h>
#include <sotto/trainers/placed_model.h>
#include <sotto/trainers/privacy_budget.h>

#include "internal/agreement/run_agreement.h"
#include "internal/agreement/run_settings.h"
#include "internal/optimizer/checked_options.h"
#include "internal/optimizer/early_stop.h"
#include "internal/optimizer/model_meetings.h"
#include "internal/optimizer/overflow.h"
#include "internal/optimizer/run_outcome.h"
#include "internal/optimizer/step_parts.h"
#include "internal/optimizer/step_settings.h"
#include "internal/optimizer/whole_model.h"
#include "internal/optimizer/work_before.h"
#include "internal/reporting/run_reporter.h"

namespace sotto {

Optimizer::Optimizer(OptimizerOptions options, std::span<float> parameters,
                     const ParameterLayout& layout)
    : options_(internal::with_place(std::move(options))),
      early_stop_(std::make_shared<internal::EarlyStop>()),
      layout_(complete_layout(layout, parameters.size())),
      model_(std::make_unique<internal::WholeModel>(parameters, options_.accelerator.get())) {
  topology_ = make_job_topology(options_);
  const AcceleratorScope scope(options_.accelerator.get());
  if (options_.observer != nullptr && options_.report_every > 0 && !options_.accelerator) {
    options_.metered |= options_.observer->wants_health();
  }
  internal::check_accelerator(options_, parameters);
  options_ = resolved(std::move(options_), parameters.size(), layout);
  AlgorithmSetup setup = make_algorithm_setup(options_, parameters, layout, topology_);
  if (options_.own_step_rule) {
    options_.step_rule.rule = setup.step_rule->name();
  }
  internal::CompressionWatch compression(options_.communication_interval);
  if (options_.metered) {
    setup.compressor = make_metered(std::move(setup.compressor), compression.start());
  }
  step_settings_ =
      std::make_unique<internal::StepSettings>(*setup.step_rule, options_.step_rule.learning_rate);
  parts_ = std::make_unique<internal::StepParts>(layout_, *step_settings_);
  setup.run_id = internal::run_number(agreement());
  setup.terms = step_settings_->terms();
  const auto steps = setup.privacy;
  algorithm_ = make_node_algorithm(options_, std::move(setup), &warnings_);
  if (Status status = model_->accelerator_status(); !status.ok()) {
    throw Error(status.message());
  }
  before_ = std::make_unique<internal::WorkBefore>(options_.rank, algorithm_->peers().to);
  if (steps) {
    budget_ = std::make_unique<PrivacyBudget>(steps);
  }
  const StopRequest stop = internal::EarlyStop::request(options_, early_stop_);
  if (!options_.store) {
    options_.store = make_store(options_.rendezvous, options_.rank,
                                {.insecure = options_.insecure,
                                 .security = options_.security,
                                 .known_by = Deadline::after(options_.timeout, &stop)});
  }
  check_transport(options_.transport, transport_options());
  session_ = make_session(options_.store, options_.rank, options_.nodes, options_.timeout, stop);
  agreement_ = std::make_unique<internal::RunAgreement>(*session_, options_);
  reporter_ = std::make_unique<internal::RunReporter>(options_, *session_, std::move(compression));
  outcome_ = std::make_unique<internal::RunOutcome>(*agreement_, *reporter_, options_.rank);
  meetings_ = std::make_unique<internal::ModelMeetings>(
      options_, *model_, *agreement_, *outcome_,
      internal::RoundHandlers{
          .connect = [this] { return connect(); },
          .drain = [this] { return drain(); },
          .step = [this](std::span<const float> gradient) { return step(gradient); },
          .done = [this] { return round_; }});
}

Optimizer::~Optimizer() {
  outcome_->leave();
  // What lies with an accelerator is given back in turn.
  const AcceleratorScope scope(options_.accelerator.get());
  driver_.reset();
  transport_.reset();
  algorithm_.reset();
  early_stop_->end();
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
    return status.fault() == Fault::ended ? status : outcome_->ended_by(status);
  }
  begun_ = true;
  return outcome_->ended_by(driver_->begin_round());
}

Status Optimizer::step(std::span<const float> gradient) {
  if (const std::size_t size = model_->parameters().size(); gradient.size() != size) {
    refuse("gradient", fmt::format("{} elements", gradient.size()),
           fmt::format("the parameters have {}", size));
  }
  internal::require_reached(options_, gradient, "gradient");
  parts_->require_none();
  if (Status status = connect(); !status.ok()) {
    return status;
  }
  reporter_->clock().enter(round_);
  Status status = start_round();
  if (status.fault() == Fault::ended) {
    return status;
  }
  if (status.ok() && budget_) {
    status = outcome_->named(budget_->enter_step());
  }
  if (status.ok()) {
    status = agreement_->enter_round(round_);
  }
  if (status.ok()) {
    status = driver_->gradient_ready(gradient);
  }
  // What a neighbour sent ends the driver, too.
  const bool overflows =
      driver_ && driver_->status().ok() &&
      internal::is_overflow(status, gradient, model_->ops(), options_.accelerator.get());
  return overflows ? outcome_->ended_by(internal::final_overflow(status)) : end_step(status);
}

Status Optimizer::end_step(const Status& status) {
  if (keep_open(status)) {
    reporter_->clock().again();
    return status;
  }
  if (!status.ok()) {
    return outcome_->ended_by(status);
  }
  outcome_->gradient_taken();
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
  return driver_ && driver_->status().ok() && outcome_->keep_open(status);
}

Status Optimizer::give_up(const Status& cause) { return outcome_->give_up(cause); }

std::optional<PrivacySpent> Optimizer::privacy() const {
  return budget_ ? std::optional(budget_->spent()) : std::nullopt;
}

void Optimizer::set_learning_rate(double learning_rate) {
  if (options_.placed) {
    refuse("lr", fmt::format("{}", learning_rate),
           "nodes that make a gradient together keep their learning rate; take a schedule");
  }
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
  const auto warn = [this](std::string text) {
    warnings_.push_back(std::move(text));
    reporter_->warn(warnings_.back());
  };
  for (const SettingsDifference& difference : driver_->take_differences()) {
    warn(fmt::format(
        "node {}: {}: the mean model follows the nodes' gradients weighted by their rates",
        options_.rank, step_settings_->terms()->describe(difference)));
  }
  for (std::string& text : driver_->take_warnings()) {
    warn(std::move(text));
  }
}

void Optimizer::ask_to_end() { agreement_->stop().ask(internal::EndReason::told); }

std::string Optimizer::end_reason() const { return agreement_->stop().why(); }

}  // namespace sotto
