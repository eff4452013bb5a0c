#include <sotto/observe/phase_trace.h>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <thread>
#include <utility>

#include <fmt/compile.h>
#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/unix_time.h>
#include <sotto/base/write_all.h>
#include <sotto/observe/trace_event.h>

#include "internal/json.h"
#include "internal/lost_file.h"

namespace sotto {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kEnd = "\n]}\n";
constexpr std::size_t kBuffer = std::size_t{64} << 10U;
constexpr auto kLongestHeld = 1s;
/// Patience with the lock where nothing follows that could be written later.
constexpr auto kLastPatience = 2000ms;
constexpr auto kBetweenTries = 1ms;
constexpr int kTrainingThread = 1;
constexpr int kCommunicationThread = 2;

std::uint64_t process_of(Rank node) { return static_cast<std::uint64_t>(kFirstNode + node); }

/// The name of a process or a thread, and which of them it is from above.
std::string name_events(std::string_view what, const TracePlace& place, std::string_view name,
                        std::int64_t order) {
  return trace_event("M", place,
                     fmt::format(R"("name":"{}_name","args":{{"name":"{}"}})", what, name)) +
         ",\n" +
         trace_event(
             "M", place,
             fmt::format(R"("name":"{}_sort_index","args":{{"sort_index":{}}})", what, order));
}

/// An event of the whole run, shown at one node: `node`.
std::string instant_event(Rank node, std::int64_t at, std::string_view category,
                          const std::string& name) {
  return trace_event(
      "i", {process_of(node), kTrainingThread, at},
      fmt::format(R"("s":"t","cat":"{}","name":{})", category, json_text(Json(name))));
}

}  // namespace

PhaseTrace::PhaseTrace(std::string path, std::string_view config, Rank first, Tell tell)
    : path_(std::move(path)),
      first_(first),
      tell_(std::move(tell)),
      creator_(::getpid()),
      begin_(PhaseSpan::Time::clock::now()),
      flushed_(begin_) {
  open(O_CREAT | O_TRUNC);
  if (descriptor_ < 0) {
    refuse("trace", path_, fmt::format("it cannot be written: {}", std::strerror(errno)));
  }
  const Json about = {{"sotto", SOTTO_VERSION},
                      {"begun_at", unix_time()},
                      {"config", internal::parsed_config(config)}};
  events_ = fmt::format("{{\"displayTimeUnit\":\"ms\",\"otherData\":{},\n\"traceEvents\":[\n{}",
                        json_text(about), instant_event(first_, 0, "run", "begin"));
  name_node(first_);
  if (const int error = write_all_at(descriptor_, events_ + std::string(kEnd), 0); error != 0) {
    refuse("trace", path_, fmt::format("it cannot be written: {}", std::strerror(error)));
  }
  events_.clear();
  given_up_ = ::lseek(descriptor_, 0, SEEK_END) == 0;  // /dev/null keeps nothing, as was asked for
}

PhaseTrace::~PhaseTrace() {
  flush(0ms);  // of a run that nobody has ended; the receiver of a report may be gone
  ::close(descriptor_);
}

void PhaseTrace::open(int flags) {
  constexpr int kMode = 0666;
  if (descriptor_ >= 0) {
    ::close(descriptor_);
  }
  descriptor_ = ::open(path_.c_str(), O_RDWR | O_CLOEXEC | flags, kMode);
  opener_ = ::getpid();
}

std::int64_t PhaseTrace::since_begin(PhaseSpan::Time time) const {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::max(time, begin_) - begin_)
      .count();
}

void PhaseTrace::name_node(Rank node) {
  if (!named_.insert(node).second) {
    return;
  }
  const std::uint64_t process = process_of(node);
  add(name_events("process", {process, kTrainingThread}, fmt::format("node {}", node), node));
  for (const auto& [thread, name] :
       {std::pair{kTrainingThread, "training"}, {kCommunicationThread, "communication"}}) {
    add(name_events("thread", {process, thread}, name, thread));
  }
}

void PhaseTrace::add(const std::string& event) {
  events_ += ",\n";
  events_ += event;
}

void PhaseTrace::phase(const PhaseSpan& span) {
  const std::lock_guard lock(mutex_);
  if (given_up_) {
    return;
  }
  name_node(span.node);
  const std::int64_t from = since_begin(span.from);
  const std::int64_t until = since_begin(span.until);
  const TracePlace place{process_of(span.node),
                         span.carrier ? kCommunicationThread : kTrainingThread, from};
  if (span.phase == RunPhase::wire) {
    append_overlapping_event(place, until, "wire", ++exchanges_,
                             fmt::format(FMT_COMPILE("\"round\":{},\"bucket\":{},\"bytes\":{}"),
                                         span.round, span.bucket, span.bytes),
                             events_);
  } else {
    append_phase_event(place, until - from, run_phase_name(span.phase), span.round, events_);
  }
  if (events_.size() > kBuffer || span.until - flushed_ > kLongestHeld) {
    flushed_ = span.until;
    flush(0ms);
  }
}

void PhaseTrace::warning(const std::string& text) {
  const std::lock_guard lock(mutex_);
  if (given_up_) {
    return;
  }
  add(instant_event(first_, since_begin(PhaseSpan::Time::clock::now()), "warning", text));
}

void PhaseTrace::round_done(Round /*done*/) {
  if (troubled_) {
    tell_trouble();
  }
}

void PhaseTrace::node_ended(Rank /*node*/) {
  {
    const std::lock_guard lock(mutex_);
    flush(kLastPatience);
  }
  if (::getpid() != creator_ || first_ != 0) {
    tell_trouble();  // nothing else is called any more in a child, or at a node that is not node 0
  }
}

void PhaseTrace::ended(const Status& /*status*/) {
  {
    const std::lock_guard lock(mutex_);
    flush(kLastPatience);
  }
  tell_trouble();
}

void PhaseTrace::give_up(SettingText trouble) {
  given_up_ = true;
  trouble_ = std::move(trouble);
  troubled_ = true;
  events_ = {};
}

void PhaseTrace::tell_trouble() {
  std::optional<SettingText> trouble;
  {
    const std::lock_guard lock(mutex_);
    trouble.swap(trouble_);
    troubled_ = false;
  }
  if (trouble) {
    tell_(*trouble);  // it may come back as a warning
  }
}

int PhaseTrace::take_turn(std::chrono::milliseconds patience) const {
  const auto until = std::chrono::steady_clock::now() + patience;
  while (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    if (error != EWOULDBLOCK && error != EINTR) {
      return error;
    }
    if (std::chrono::steady_clock::now() >= until) {
      return EWOULDBLOCK;
    }
    std::this_thread::sleep_for(kBetweenTries);
  }
  return 0;
}

void PhaseTrace::flush(std::chrono::milliseconds patience) {
  if (events_.empty() || given_up_) {
    return;
  }
  if (opener_ != ::getpid()) {
    open(0);
  }
  const int refused = descriptor_ < 0 ? errno : take_turn(patience);
  if (refused == EWOULDBLOCK) {
    if (patience > 0ms || events_.size() > kMostHeld) {
      give_up(internal::lost_file("trace", path_, "another process keeps it locked"));
    }
    return;
  }
  if (refused != 0) {
    return give_up(internal::lost_file("trace", path_, std::strerror(refused)));
  }
  const off_t end = ::lseek(descriptor_, 0, SEEK_END);
  const off_t at = end - static_cast<off_t>(kEnd.size());
  if (end < 0) {
    give_up(internal::lost_file("trace", path_, std::strerror(errno)));
  } else if (at < 0) {
    give_up(internal::lost_file("trace", path_, "somebody has cut it"));
  } else if (static_cast<std::size_t>(at) + events_.size() > kMostBytes) {
    give_up(mention("trace") +
            fmt::format(": {} has reached its limit; the rest of the run is left out", path_));
  } else if (const int error = write_all_at(descriptor_, events_ + std::string(kEnd), at);
             error != 0) {
    // What is there in part must not make the rest unreadable.
    [[maybe_unused]] const bool cut =
        ::ftruncate(descriptor_, at) == 0 && write_all_at(descriptor_, kEnd, at) == 0;
    give_up(internal::lost_file("trace", path_, std::strerror(error)));
  }
  ::flock(descriptor_, LOCK_UN);
  events_.clear();
}

}  // namespace sotto
