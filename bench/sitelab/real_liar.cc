#include "real_liar.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/check.h>
#include <sotto/base/error.h>
#include <sotto/comm/channels.h>
#include <sotto/compress/registry.h>
#include <sotto/sites/faults/lies.h>
#include <sotto/sites/nodes/incarnation.h>
#include <sotto/sites/nodes/state/site_folder.h>
#include <sotto/sites/process/site_links.h>
#include <sotto/sites/process/site_of_options.h>

#include "site_files.h"

namespace sotto::sitelab {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::nanoseconds;

/// It looks this often whether it is to stop.
constexpr std::chrono::milliseconds kSlice{20};

/// Channels whose user lies in what it sends.
class LyingChannels final : public Channels {
 public:
  LyingChannels(std::unique_ptr<Channels> channels, const PlannedLie& lie, std::size_t dimension,
                const std::string& compressor, sites::MixingKind exchange, std::uint64_t seed)
      : channels_(std::move(channels)),
        lie_(lie),
        compressor_(make_compressor(compressor)),
        form_{.dimension = dimension, .exchange = exchange, .compressor = compressor_.get()},
        random_({.seed = seed, .rank = 3, .purpose = Purpose::faults}) {}

  std::string address() const override { return channels_->address(); }
  Status send(Rank peer, std::span<const std::byte> message) override {
    Status status;
    for (const auto& said : lie_about(lie_, message, form_, random_)) {
      status = status.ok() ? channels_->send(peer, said) : status;
    }
    return status;
  }
  Result<ChannelEvent> poll(Deadline deadline) override { return channels_->poll(deadline); }
  void close(Rank peer, std::chrono::milliseconds pause) override { channels_->close(peer, pause); }
  std::vector<ChannelTraffic> traffic() const override { return channels_->traffic(); }
  RefusedKeys refused_keys() const override { return channels_->refused_keys(); }
  Strangers strangers() const override { return channels_->strangers(); }

 private:
  std::unique_ptr<Channels> channels_;
  const PlannedLie lie_;
  std::unique_ptr<Compressor> compressor_;
  const MessageForm form_;
  RandomStream random_;
};

std::unique_ptr<Channels> open_channels(const SiteOptions& options, std::size_t message_bytes) {
  auto made = make_channels(site_channels(options, message_bytes));
  if (!made.ok()) {
    throw Error("listen", made.status().message());
  }
  return std::move(*made);
}

class Liar {
 public:
  Liar(const FaultPlan& plan, const LiarOptions& options, const PlannedLie& lie)
      : plan_(plan),
        options_(options),
        lie_(lie),
        files_(options.folder, options.site, options.seed),
        site_options_(options_of(plan)),
        task_(make_site_task(plan, options.site)),
        parameters_(task_->dimension()),
        gradient_(task_->dimension()) {
    task_->initialize(parameters_, options.seed);
    sites::SiteSetup setup = site_setup(site_options_, task_->layout(), parameters_);
    setup.incarnation = draw_incarnation();
    setup.life = SiteFolder::life_by_clock();
    site_.emplace(std::move(setup));
    channels_.emplace(open_channels(site_options_, site_->max_message_bytes()), lie_,
                      parameters_.size(), site_options_.compressor, plan.exchange, options.seed);
    links_.emplace(*site_, *channels_, *site_options_.security.peers, site_options_.rank,
                   site_options_.exchange, SiteTeller(*site_, [](const SiteEvent&) {}));
  }

  Status lie() {
    const auto began = Clock::now();
    Status status;
    while (status.ok() && !options_.stop()) {
      const auto waited = Clock::now() - began;
      status = site_->try_begin(waited >= nanoseconds(plan_.found_after)) ? round() : serve(kSlice);
    }
    return status;
  }

 private:
  SiteOptions options_of(const FaultPlan& plan) const {
    SiteOptions options = files_.options(plan);
    options.listen = fmt::format("127.0.0.1:{}", options_.port);
    options.timeout =
        std::chrono::duration_cast<std::chrono::milliseconds>(nanoseconds(plan.silence));
    options.data = load_site_data(plan)->dataset->names();
    return options;
  }
  /// Takes in and answers what comes, for so long.
  Status serve(nanoseconds lasting) {
    const auto until = Clock::now() + lasting;
    Status status = links_->pump(Deadline::after(nanoseconds(0)));
    while (status.ok() && !options_.stop() && Clock::now() < until) {
      status = links_->pump(Deadline::after(std::min<nanoseconds>(kSlice, until - Clock::now())));
    }
    return status;
  }
  /// One round as of an honest site, but for what its channels make of it.
  Status round() {
    for (Round step = 0; step < plan_.interval; ++step) {
      if (Status status = serve(nanoseconds(plan_.gradient)); !status.ok() || options_.stop()) {
        return status;
      }
      (void)task_->loss_and_gradient(site_->round() * plan_.interval + step, parameters_,
                                     gradient_);
      // What others did to its model is no reason for a liar to end.
      if (!site_->step(gradient_).ok()) {
        (void)site_->put_back();
      }
    }
    if (lie_.kind == LieKind::late && random_.uniform() < lie_.often) {
      const double lasts = lie_.strength_of() * static_cast<double>(plan_.patience);
      if (Status status = serve(nanoseconds(std::llround(lasts))); !status.ok()) {
        return status;
      }
    }
    if (Status status = site_->offer(); !status.ok()) {
      return status;
    }
    links_->send();
    const auto until = Clock::now() + nanoseconds(plan_.patience);
    while (!site_->complete() && Clock::now() < until && !options_.stop()) {
      if (Status status = serve(kSlice); !status.ok()) {
        return status;
      }
    }
    return site_->collect();
  }

  const FaultPlan& plan_;
  const LiarOptions& options_;
  const PlannedLie lie_;
  RandomStream random_{{.seed = options_.seed,
                        .rank = options_.site,
                        .round = 4,
                        .purpose = Purpose::faults}};  ///< rounds that it is late in
  const SiteFiles files_;
  SiteOptions site_options_;
  std::unique_ptr<Task> task_;
  std::vector<float> parameters_;
  std::vector<float> gradient_;
  std::optional<sites::Site> site_;
  std::optional<LyingChannels> channels_;
  std::optional<SiteLinks> links_;
};

}  // namespace

std::vector<std::string> liar_words(const LiarOptions& options) {
  return {"--lie",  fmt::to_string(options.site),
          "--seed", fmt::to_string(options.seed),
          "--keep", options.folder,
          "--port", fmt::to_string(options.port)};
}

Status run_liar(const FaultPlan& plan, const LiarOptions& options) {
  const PlannedLie* lie = plan.lie_of(options.site);
  if (lie == nullptr) {
    refuse("liar", fmt::to_string(options.site), "the site is honest in this plan");
  }
  return Liar(plan, options, *lie).lie();
}

}  // namespace sotto::sitelab
