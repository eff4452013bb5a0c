#include <sotto/sites/process/site_of_options.h>

#include <algorithm>

#include <sotto/base/error.h>
#include <sotto/base/secret_stream.h>
#include <sotto/compress/registry.h>
#include <sotto/sites/process/longest_transfer.h>
#include <sotto/sites/process/site_links.h>

namespace sotto {
namespace {

constexpr std::size_t kMostQueued = 4;  // messages to a peer beyond a full window

/// Seconds in which an honest newcomer has got a model of so many elements, has waited for a second
/// one, and sends its first parcel.
double newcomer_s(const SiteOptions& options, std::size_t elements) {
  constexpr auto kPatiences = 3;  // for its links, the model's first bytes, and its first round
  const std::chrono::duration<double> waits = options.found_after + kPatiences * options.patience;
  return longest_transfer_s(elements * sizeof(float)) + waits.count();
}

}  // namespace

sites::SiteSetup site_setup(const SiteOptions& options, const ParameterLayout& layout,
                            std::span<float> parameters) {
  sites::SiteSetup setup;
  setup.name = options.name;
  setup.settings = settings_text(shared_settings(options, layout));
  setup.agreement = agreement_of(setup.settings);
  setup.peers = site_peers(options.security.peers->peers(), options.rank, options.exchange);
  setup.parameters = parameters;
  setup.layout = layout;
  setup.step_rule =
      options.own_step_rule ? options.own_step_rule() : make_step_rule(options.step_rule);
  setup.compressor =
      make_compressor(options.compressor, ContractKind::contraction, host_ops(), layout);
  setup.exchange = options.exchange;
  setup.rule = options.rule;
  setup.consensus_stepsize = options.consensus_stepsize;
  setup.communication_interval = options.communication_interval;
  setup.outer_step_rule = options.outer_step_rule;
  setup.step_weighting = options.step_weighting;
  setup.slack = options.slack;
  setup.window = options.window;
  setup.mass = options.mass;
  setup.sum = options.sum;
  setup.pull = options.pull;
  setup.observer = options.only_takes;
  setup.newcomer_s = newcomer_s(options, parameters.size());
  setup.rounds = options.rounds;
  setup.seed = options.seed;
  return setup;
}

SiteOptions with_roster(SiteOptions options) {
  if (options.exchange == sites::MixingKind::secure_mean) {
    refuse("secure_sum", "true", "its nodes are those of a list: give one, and no seeds");
  }
  if (options.privacy) {
    throw Error("privacy_epsilon",
                "a run whose nodes come and go has no folder to keep what was spent");
  }
  options.security.own = options.roster->key.node_keys(options.name);
  options.security.peers = std::make_shared<AllowList>(std::vector<TrustedPeer>{
      {.rank = 0, .name = options.name, .key = options.security.own.public_key}});
  options.rank = 0;
  options.peers_file.clear();
  return options;
}

sites::Secret32 draw_secret() {
  SecretStream random(SecretKey::fresh(), SecretPurpose::sample, 0);
  sites::Secret32 secret;
  for (std::uint8_t& byte : secret) {
    byte = static_cast<std::uint8_t>(random.next_u64());
  }
  return secret;
}

ChannelOptions site_channels(const SiteOptions& options, std::size_t max_message_bytes) {
  ChannelOptions channels{.security = options.security};
  channels.rank = options.rank;
  channels.bind = options.listen;
  channels.source = options.source;
  channels.max_message_bytes = max_message_bytes;
  channels.max_queued_bytes =
      (options.window + kMostQueued) * (max_message_bytes + kMostQueued * 1024);
  channels.timeout = options.timeout;
  channels.offence_pause = SiteLinks::kFirstPause;
  return channels;
}

}  // namespace sotto
