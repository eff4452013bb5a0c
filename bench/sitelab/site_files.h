// The files of one real site of `sitelab`: key, list of peers, site.toml and state, and
// copies of its states as they are written, so that an older one can be put back.
//
// One thread at a time. The folder is the caller's; a file that cannot be written throws
// std::runtime_error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/comm/trust/keys.h>
#include <sotto/sites/faults/fault_plan.h>
#include <sotto/sites/process/site_options.h>
#include <sotto/trainers/tasks/task.h>
#include <sotto/trainers/tasks/task_registry.h>

namespace sotto::sitelab {

/// A line of a site's list of peers.
struct RealPeer {
  Rank site = 0;
  PublicKey key{};
  int port = 0;  ///< the port of loopback at which it is reached
  bool may_send = false;
  bool send_to = false;
};

/// The data that all sites of a plan share out among them.
std::shared_ptr<const TaskData> load_site_data(const FaultPlan& plan);
/// The task that sites of a plan train: of this one, which has its part of the data, or on all.
std::unique_ptr<Task> make_site_task(const FaultPlan& plan, std::optional<Rank> site = {});
/// The test accuracy of a model that sites of a plan have trained, on two thousand examples.
class SiteJudge {
 public:
  explicit SiteJudge(const FaultPlan& plan);
  double accuracy(std::span<const float> model) { return task_->evaluate(model).accuracy; }

 private:
  std::unique_ptr<Task> task_;
};

class SiteFiles {
 public:
  /// Makes the folder with the site's key in it. `seed` is that of the run.
  SiteFiles(std::string folder, Rank site, const KeyPair& keys, std::uint64_t seed);
  /// A folder that was made so before.
  SiteFiles(std::string folder, Rank site, std::uint64_t seed)
      : folder_(std::move(folder)), site_(site), seed_(seed) {}

  const std::string& folder() const { return folder_; }
  std::string site_file() const { return folder_ + "/site.toml"; }
  std::string state() const { return folder_ + "/state"; }
  std::string log() const { return folder_ + "/log"; }
  std::string result() const { return folder_ + "/result.json"; }

  /// The site's file for a plan: it listens at one port of loopback, its monitor at another one.
  void write_site(const FaultPlan& plan, int port, int monitor) const;
  /// What the site's file for a plan says, but for what concerns its process alone.
  SiteOptions options(const FaultPlan& plan) const;
  /// The list of peers, the site's own line among them; put in place at once.
  void write_peers(const std::vector<RealPeer>& lines) const;

  /// A state was written as `name` in the state folder: a copy is kept, the newest few.
  void keep_state(std::string_view name);
  /// Puts back the state so many before the last that was kept, or the oldest. False: none is kept.
  bool restore(std::uint64_t back);
  /// Changes a byte of the newest state, and removes them all where that was the only one. False:
  /// there is none.
  bool corrupt();
  void lose();
  /// Another site's state, as it is now, becomes this one's.
  void copy_state(const SiteFiles& from) const;

 private:
  static constexpr std::size_t kKept = 8;

  std::string folder_;
  Rank site_;
  std::uint64_t seed_;
  std::uint64_t copies_ = 0;
  std::deque<std::string> kept_;  ///< files, oldest first
};

}  // namespace sotto::sitelab
