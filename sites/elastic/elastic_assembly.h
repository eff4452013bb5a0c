// The parts of one node of an all-reduce whose nodes come and go, as its options want them: step
// rules, local steps, the member's setup, and channels. Not for users.
//
// Pure functions, but for own_step_rule of the options; thread-safe.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include <sotto/base/parameter_layout.h>
#include <sotto/comm/channels.h>
#include <sotto/comm/trust/allow_list.h>
#include <sotto/optim/step_rule.h>
#include <sotto/sites/elastic/elastic_options.h>
#include <sotto/sites/epochs/epoch_local_steps.h>
#include <sotto/sites/epochs/epoch_setup.h>

namespace sotto {

/// The rule by which the caller's gradients make steps. Throws Error where own_step_rule makes
/// none.
std::unique_ptr<StepRule> make_gradient_rule(const ElasticOptions& options);

/// Local steps at `parameters`, which must outlive them; none: each gradient is one of the run's.
/// Throws Error for an interval of 0.
std::optional<sites::EpochLocalSteps> make_local_steps(const ElasticOptions& options,
                                                       std::span<float> parameters,
                                                       const ParameterLayout& layout);

/// What the member is made of, whose model is `parameters`; `founder`: it founds the run, alone.
/// Names and numbers that are not the options' are left as they are. Throws Error for what is
/// refused.
sites::EpochSetup member_setup(const ElasticOptions& options, bool founder,
                               std::span<float> parameters, const ParameterLayout& layout);

/// Channels to the peers in `list`, at this address, for a model of so many parameters.
ChannelOptions channels_for(const ElasticOptions& options, std::size_t parameters,
                            const std::string& address, std::shared_ptr<AllowList> list);

}  // namespace sotto
