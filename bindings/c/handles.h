// What stands behind the handles of sotto.h. Each is made and destroyed by its functions alone.
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/parameter_layout.h>
#include <sotto/comm/store.h>
#include <sotto/comm/trust/peers_watch.h>
#include <sotto/compress/compressor.h>
#include <sotto/topology/topology.h>
#include <sotto/trainers/optimizer.h>
#include <sotto/trainers/settings/privacy_settings.h>

#include "callers_rule.h"
#include "guard.h"
#include "settings.h"
#include "sotto.h"

namespace sotto::c {

/// What the user should know, as far back as is told. Thread-safe.
class Notices {
 public:
  void add(std::string text) {
    const std::lock_guard lock(mutex_);
    if (texts_.size() == kMost) {
      texts_.pop_front();
    }
    texts_.push_back(std::move(text));
  }
  std::vector<std::string> texts() const {
    const std::lock_guard lock(mutex_);
    return {texts_.begin(), texts_.end()};
  }

 private:
  static constexpr std::size_t kMost = 100;
  mutable std::mutex mutex_;
  std::deque<std::string> texts_;
};

}  // namespace sotto::c

struct sotto_layout {
  sotto::ParameterLayout blocks;
};

struct sotto_store {
  std::shared_ptr<sotto::Store> store;
};

struct sotto_interrupt {
  /// Shared with the optimizers that were made with it.
  std::shared_ptr<std::atomic<bool>> flag = std::make_shared<std::atomic<bool>>(false);
};

struct sotto_step_rule {
  /// Shared with the optimizer that it makes steps for.
  std::shared_ptr<sotto::c::StepFunction> function;
};

struct sotto_optimizer {
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

  sotto::c::Notices notices;                             ///< beside the optimizer's own warnings
  const std::shared_ptr<std::atomic<bool>> interrupted;  ///< calls that wait are to end
  std::unique_ptr<sotto::Telemetry> telemetry;
  sotto::Optimizer optimizer;
  std::size_t dimension;
  bool begun = false;     ///< begin_step without its step
  bool finished = false;  ///< no step may follow
  sotto::Status broken;   ///< the fault of a state or gradient that was taken in part
  std::atomic_flag busy;
  std::optional<sotto::PeersWatch> watch;  ///< uses `notices`
};

struct sotto_compressor {
  std::unique_ptr<sotto::Compressor> compressor;
  std::atomic_flag busy;
};

struct sotto_topology {
  std::shared_ptr<const sotto::Topology> topology;
};

namespace sotto::c {

/// in_turn for an optimizer that can still be used.
template <typename Body>
sotto_status with(sotto_optimizer* held, const Body& body) noexcept {
  return in_turn(held, "optimizer",
                 [&] { return held->broken.ok() ? outcome(body()) : outcome(held->broken); });
}

}  // namespace sotto::c
