#include <sotto/sites/elastic/elastic_assembly.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/compress/registry.h>

namespace sotto {
namespace {

/// A message has at most so many bytes beside a model or a piece of one: members and digests.
constexpr std::size_t kMostBesides = std::size_t{64} * 1024;
/// Pieces of a copy of the state have at most so many bytes: those of earlier versions do.
constexpr std::size_t kMostPieceBytes = std::size_t{4} << 20;
/// Bytes of pieces and means that may wait for a newcomer, beside two of the longest messages.
constexpr std::size_t kNewcomerBytesQueued = 8 * kMostPieceBytes;

std::unique_ptr<Compressor> compressor_of(const ElasticOptions& options) {
  return make_compressor(options.compressor, ContractKind::contraction);
}

/// Settings of the run's steps, from those of the caller's gradients.
std::function<std::uint64_t(Round)> step_settings_of(const ElasticOptions& options) {
  const auto& own = options.own_step_settings;
  const Round interval = options.communication_interval;
  return own ? [own, interval](Round step) { return own(step * interval); } : own;
}

}  // namespace

std::unique_ptr<StepRule> make_gradient_rule(const ElasticOptions& options) {
  if (!options.own_step_rule) {
    return make_step_rule(options.step_rule);
  }
  auto rule = options.own_step_rule();
  if (rule == nullptr) {
    throw Error("own_step_rule", "it must make a step rule each time that it is called");
  }
  return rule;
}

std::optional<sites::EpochLocalSteps> make_local_steps(const ElasticOptions& options,
                                                       std::span<float> parameters,
                                                       const ParameterLayout& layout) {
  const Round interval = options.communication_interval;
  if (interval < 1) {
    refuse("communication_interval", fmt::to_string(interval), "it is 1 or more");
  }
  return has_local_steps(options)
             ? std::optional<sites::EpochLocalSteps>(std::in_place, parameters, layout, interval,
                                                     make_gradient_rule(options))
             : std::nullopt;
}

sites::EpochSetup member_setup(const ElasticOptions& options, bool founder,
                               std::span<float> parameters, const ParameterLayout& layout) {
  return {.name = options.name,
          .founders = founder ? std::vector{options.name} : std::vector<std::string>(),
          .least = options.roster.least,
          .most = options.roster.most,
          .parameters = parameters,
          .layout = layout,
          .step_rule = has_local_steps(options) ? make_outer_step_rule(run_step_rule(options))
                                                : make_gradient_rule(options),
          .rule_saves_in_parts = has_local_steps(options) || !options.own_step_rule,
          .learning_rate = run_step_rule(options).learning_rate,
          .step_settings = step_settings_of(options),
          .compressor = compressor_of(options),
          .seed = options.seed,
          .grace = options.grace};
}

ChannelOptions channels_for(const ElasticOptions& options, std::size_t parameters,
                            const std::string& address, std::shared_ptr<AllowList> list) {
  ChannelOptions channels{
      .security = {.own = options.roster.key.node_keys(options.name), .peers = std::move(list)}};
  channels.rank = 0;
  channels.bind = address;
  channels.max_message_bytes =
      std::max(compressor_of(options)->max_bytes(parameters), kMostPieceBytes) + kMostBesides;
  channels.max_queued_bytes = 2 * channels.max_message_bytes + kNewcomerBytesQueued;
  channels.timeout = options.timeout;
  return channels;
}

}  // namespace sotto
