#include "rank_claim.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <mutex>
#include <set>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/bytes.h>
#include <sotto/base/error.h>
#include <sotto/base/text.h>
#include <sotto/comm/run_keys.h>

#include "process_life.h"
#include "start_number.h"

namespace sotto::internal {

struct RankClaim::Record {
  std::uint64_t token = 0;
  std::uint64_t beat = 0;
  std::uint64_t pid = 0;
  /// Start of the process in the kernel's ticks; tells it from a later one of its pid.
  std::uint64_t started = 0;
  std::string place;  ///< scope in which pids are unique
  std::string host;
};

namespace {

using std::chrono::milliseconds;

constexpr std::size_t kMostText = 300;
constexpr milliseconds kBeat{400};
/// Several beats, on a machine whose cores are taken.
constexpr milliseconds kSilence{1'500};
/// The least time that a process which came at the same moment has to write its record.
constexpr milliseconds kSettle{20};

/// The claims of this process, by token.
class Living {
 public:
  static Living& instance() {
    static Living living;
    return living;
  }
  void add(std::uint64_t token) {
    const std::lock_guard lock(mutex_);
    tokens_.insert(token);
  }
  void remove(std::uint64_t token) {
    const std::lock_guard lock(mutex_);
    tokens_.erase(token);
  }
  bool has(std::uint64_t token) {
    const std::lock_guard lock(mutex_);
    return tokens_.contains(token);
  }

 private:
  std::mutex mutex_;
  std::set<std::uint64_t> tokens_;
};

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? std::string(name.data()) : "?";
}

/// The kernel that runs and the process's view of pids: those of two containers are not the same.
std::string place() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  std::array<char, 64> view{};
  const auto length = ::readlink("/proc/self/ns/pid", view.data(), view.size() - 1);
  return boot.empty() || length <= 0 ? std::string() : fmt::format("{} {}", boot, view.data());
}

}  // namespace

RankClaim::RankClaim(Store& store, Rank rank)
    : store_(store), rank_(rank), token_(draw_start_number(rank)) {
  // A claim may be static, and the list of claims must outlive it.
  (void)Living::instance();
}

RankClaim::~RankClaim() { Living::instance().remove(token_); }

std::string RankClaim::key() const { return node_key("claim", rank_); }

Result<std::optional<RankClaim::Record>> RankClaim::read() const {
  using Found = std::optional<Record>;
  const auto value = store_.get(key(), Deadline::after({}));
  if (!value.ok()) {
    return value.status().fault() == Fault::deadline ? Result<Found>(Found()) : value.status();
  }
  ByteReader in(*value);
  Record record;
  record.token = in.read<std::uint64_t>();
  record.beat = in.read<std::uint64_t>();
  record.pid = in.read<std::uint64_t>();
  record.started = in.read<std::uint64_t>();
  record.place = in.read_string(kMostText);
  record.host = in.read_string(kMostText);
  return in.finished() ? Result<Found>(std::move(record)) : Result<Found>(Found());
}

Status RankClaim::write() {
  const auto pid = static_cast<std::uint64_t>(::getpid());
  ByteBuffer out;
  out.write(token_);
  out.write(++beat_);
  out.write(pid);
  out.write(start_of(pid).value_or(0));
  out.write_string(place().substr(0, kMostText));
  out.write_string(host_name().substr(0, kMostText));
  next_beat_ = Deadline::Clock::now() + kBeat;
  return store_.set(key(), out.bytes());
}

Status RankClaim::refusal(const Record& holder) const {
  const bool own = holder.place == place() && holder.pid == static_cast<std::uint64_t>(::getpid());
  return {Fault::unexpected,
          fmt::format("another {} is node {} already (host {}, pid {}): give each its own rank, "
                      "and each run a store of its own",
                      own ? "one of this process" : "process", rank_, printable(holder.host),
                      holder.pid)};
}

Result<bool> RankClaim::lives(const Record& record, const Deadline& deadline) {
  if (!record.place.empty() && record.place == place()) {
    if (record.pid == static_cast<std::uint64_t>(::getpid())) {
      return Living::instance().has(record.token);
    }
    const Life life = life_of(record.pid, record.started);
    if (life != Life::unknown) {
      return life == Life::lives;
    }
  }
  const auto silence = deadline.or_after(kSilence);
  while (!silence.expired()) {
    sleep_until(silence.or_after(kSettle));
    const auto now = read();
    if (!now.ok()) {
      return now.status();
    }
    if (*now && ((*now)->token != record.token || (*now)->beat != record.beat)) {
      return (*now)->token != token_;
    }
  }
  if (deadline.stopped()) {
    return Status(Fault::stopped, "stopped while looking whether another process is this node");
  }
  silent_ = fmt::format("host {}, pid {}", printable(record.host), record.pid);
  return false;
}

Status RankClaim::take(const Deadline& deadline) {
  if (taken_) {
    return {};
  }
  const auto from = Deadline::Clock::now();
  const auto before = read();
  const auto look = Deadline::Clock::now() - from;
  if (!before.ok()) {
    return before.status();
  }
  if (*before) {
    const auto alive = lives(**before, deadline);
    if (!alive.ok() || *alive) {
      return alive.ok() ? refusal(**before) : alive.status();
    }
  }
  Living::instance().add(token_);
  if (Status written = write(); !written.ok()) {
    return written;
  }
  // A process that found no record at the same moment has written its own by then: the last holds.
  sleep_until(deadline.or_after(std::max<Deadline::Clock::duration>(kSettle, 4 * look)));
  taken_ = true;
  next_beat_ = {};
  Status held = hold();
  taken_ = held.ok();
  return held;
}

Status RankClaim::hold() {
  if (!taken_ || Deadline::Clock::now() < next_beat_) {
    return {};
  }
  const auto now = read();
  if (!now.ok()) {
    return now.status();
  }
  if (*now && (*now)->token != token_) {
    Living::instance().remove(token_);
    taken_ = false;
    return refusal(**now);
  }
  return write();
}

}  // namespace sotto::internal
