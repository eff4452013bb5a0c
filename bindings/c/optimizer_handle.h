// What stands behind a sotto_optimizer: the node, and what it tells its user.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/parameter_layout.h>
#include <sotto/comm/trust/peers_watch.h>
#include <sotto/observe/telemetry.h>
#include <sotto/trainers/optimizer.h>
#include <sotto/trainers/settings/privacy_settings.h>

#include "guard.h"
#include "latest.h"
#include "settings.h"
#include "sotto.h"

struct sotto_optimizer {
  static constexpr std::string_view kKind = "optimizer";

  /// Calls that wait end once `flag` is true.
  sotto_optimizer(const sotto::c::NodeSettings& settings, sotto::OptimizerOptions options,
                  std::span<float> parameters, const sotto::ParameterLayout& layout,
                  std::shared_ptr<std::atomic<bool>> flag)
      : interrupted(std::move(flag)),
        telemetry(make_telemetry(settings, options,
                                 [this](const std::string& text) { notices.add(text); })),
        optimizer(watched(options), parameters, layout),
        dimension(parameters.size()) {
    if (options.privacy && options.privacy->test_seed) {
      notices.add(fmt::format("privacy_seed: {}", sotto::kSeedHidesNothing));
    }
    if (options.security) {
      watch.emplace(settings.shared.peers, options.security->peers,
                    [this](const sotto::PeersNews& news) { notices.add(news.text); });
    }
  }

  const sotto::OptimizerOptions& watched(sotto::OptimizerOptions& options) const {
    options.observer = telemetry.get();
    options.interrupted = [flag = interrupted] { return flag->load(); };
    return options;
  }

  sotto::c::Latest<std::string, 100> notices;  ///< warnings beside the optimizer's own
  const std::shared_ptr<std::atomic<bool>> interrupted;
  std::unique_ptr<sotto::Telemetry> telemetry;
  sotto::Optimizer optimizer;
  std::size_t dimension;
  bool finished = false;  ///< no step may follow
  std::atomic_flag busy;
  std::optional<sotto::PeersWatch> watch;  ///< uses `notices`
};
