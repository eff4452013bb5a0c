#include <sotto/sites/process/site_options.h>

#include <sodium.h>

#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/base/digest.h>
#include <sotto/compress/registry.h>
#include <sotto/trainers/data/shared_scaling.h>
#include <sotto/trainers/settings/step_rule_settings.h>

namespace sotto {
namespace {

std::string short_digest(std::span<const std::byte> bytes) {
  return sha256_hex(bytes).substr(0, 16);
}

/// As it is where it is short and plain, else its digest.
std::string brief(std::span<const std::string> all) {
  const std::string names = fmt::format("{}", fmt::join(all, ","));
  constexpr std::size_t kLongest = 60;
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+.,";
  if (names.empty()) {
    return "none";
  }
  return names.size() <= kLongest && names.find_first_not_of(kPlain) == std::string::npos
             ? names
             : short_digest(std::as_bytes(std::span(names)));
}

}  // namespace

AgreedSettings shared_settings(const SiteOptions& options, const ParameterLayout& layout) {
  const std::string shapes = layout_text(layout);
  // As the compressor writes itself: a specification can be shorter than what it stands for.
  const auto compressor =
      make_compressor(options.compressor, ContractKind::contraction, host_ops(), layout);
  AgreedSettings settings = {
      {"parameters", fmt::to_string(dimension_of(layout))},
      {"layout", short_digest(std::as_bytes(std::span(shapes)))},
      {"columns", brief(options.data.columns)},
      {"classes", brief(options.data.classes)},
      {"exchange", std::string(sites::name_of(options.exchange))},
      {"compressor", compressor->spec()},
      {"rule", options.rule.empty() ? "none" : options.rule},
      {"consensus-stepsize",
       options.consensus_stepsize ? fmt::format("{}", *options.consensus_stepsize) : "default"},
      {"communication-interval", fmt::to_string(options.communication_interval)},
      {"step-weighting", std::string(name_of(options.step_weighting))},
      {"window", fmt::to_string(options.window)},
      {"seed", fmt::to_string(options.seed)},
      {"init", options.init.value_or("").empty() ? "none" : *options.init},
  };
  const AgreedSettings steps = options.own_step_rule ? AgreedSettings{{"step-rule", "own"}}
                                                     : step_rule_settings(options.step_rule);
  settings.insert(settings.end(), steps.begin(), steps.end());
  if (options.outer_step_rule) {
    add_outer_settings(*options.outer_step_rule, settings);
  }
  if (options.exchange == sites::MixingKind::secure_mean) {
    settings.push_back({"secure-colluders", fmt::to_string(options.sum.colluders)});
    settings.push_back({"secure-range", fmt::format("{}", options.sum.range)});
  }
  if (options.exchange == sites::MixingKind::push_sum) {
    settings.push_back({"mass-return", fmt::format("{}", options.mass.back)});
    settings.push_back({"parcel-mass", fmt::format("{}", options.mass.parcel)});
    settings.push_back(
        {"mass-bounds", fmt::format("{},{}", options.mass.least, options.mass.most)});
  }
  if (!options.data.targets.empty()) {
    settings.push_back({"targets", brief(options.data.targets)});
  }
  if (!options.scaling.empty()) {
    settings.push_back({"scaling", options.scaling.substr(0, kDigestShown)});
  }
  settings.insert(settings.end(), options.further.begin(), options.further.end());
  return settings;
}

SiteOptions options_by_roster(RosterOptions roster, std::string name) {
  SiteOptions options{
      .security = {.own = roster.key.node_keys(name),
                   .peers = std::make_shared<AllowList>(std::vector<TrustedPeer>())}};
  options.name = std::move(name);
  options.roster = std::move(roster);
  return options;
}

std::string model_digest(std::span<const float> model) {
  return short_digest(std::as_bytes(model));
}

sites::Agreement agreement_of(const std::string& settings) {
  sites::Agreement digest{};
  static_assert(sizeof digest == crypto_hash_sha256_BYTES);
  crypto_hash_sha256(reinterpret_cast<unsigned char*>(digest.data()),
                     reinterpret_cast<const unsigned char*>(settings.data()), settings.size());
  return digest;
}

}  // namespace sotto
